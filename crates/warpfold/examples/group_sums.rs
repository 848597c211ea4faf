//! Times sums of groups in memory: `group_sums ROWS GROUPS THREADS`. Prints the seconds of
//! each run, one for each line that comes on stdin, so that peers can take turns.

use std::io::BufRead;
use std::time::Instant;
use warpfold::{Op, Reduction, Threads};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [rows, groups, threads] = numbers[..] else {
        return Err("usage: group_sums ROWS GROUPS THREADS".into());
    };
    // The same numbers as in benches/groups.py.
    let mix = |i: u64| {
        let x = (i ^ i >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
        let x = (x ^ x >> 27).wrapping_mul(0x81da_def4_bc2d_d44d);
        x ^ x >> 33
    };
    let keys: Vec<i64> = (0..rows as u64).map(|i| (mix(i) % groups as u64) as i64).collect();
    let values: Vec<f64> =
        (0..rows as u64).map(|i| (mix(!i) >> 11) as f64 / (1u64 << 53) as f64).collect();
    let question = Reduction::of(Op::Sum).threads(Threads::Exactly(threads));
    for line in std::io::stdin().lock().lines() {
        line?;
        let start = Instant::now();
        let answer = question.by(&keys).run(&values)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds:.6} {}", answer.len());
    }
    Ok(())
}
