//! `ptx test`: suites of launches, their verdicts and the formats of them; symbols by name.

use crate::common::Dir;
use serde_json::Value;
use std::path::PathBuf;

const PASSED: i32 = 0;
const USAGE: i32 = 2;
const FAILED: i32 = 3;

fn dir(samples: &[&str]) -> Dir {
    let kernels = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ptx/kernels");
    let dir = Dir::new();
    for name in samples {
        let ptx = kernels.join(format!("ptx/12.0/{name}.90.ptx"));
        dir.file(&format!("{name}.ptx"), std::fs::read(ptx).unwrap());
    }
    dir
}

/// Two passes of one kernel, and what must come out.
const TWO_PASS: &str = "
ptx = 'two_pass.ptx'
seeds = 2
[[test]]
name = 'two passes'
[[test.launch]]
kernel = 'two_pass_f32'
grid = 4
block = 256
args = ['in:f32:1000=ones', 'partials:f32:4', 'u64:1000']
[[test.launch]]
kernel = 'two_pass_f32'
grid = 1
block = [32, 1]
args = ['partials', 'struct:out:f32:1', 'u64:4']
[test.expect]
out = { values = '1000' }
partials = { file = 'partials.npy', rtol = 1e-6 }
";

fn two_pass() -> Dir {
    let dir = dir(&["two_pass"]);
    let partials: Vec<u8> =
        [256f32, 256.0, 256.0, 232.0001].iter().flat_map(|x| x.to_le_bytes()).collect();
    dir.npy("partials.npy", "<f4", &[4], &partials);
    dir
}

#[test]
fn launches_follow_each_other_and_outputs_are_compared() {
    let dir = two_pass();
    dir.file("suite.toml", TWO_PASS);
    let run = dir.run("ptx test suite.toml");
    assert_eq!((run.status, run.err.as_str()), (PASSED, ""), "{run:?}");
    assert_eq!(run.out, "ok      two passes: 5 schedules\n5 passed, 0 failed\n");

    dir.file("suite.toml", TWO_PASS.replace("1e-6", "1e-9").replace("'1000' }", "'999' }"));
    let run = dir.run("ptx test suite.toml");
    assert_eq!(run.status, FAILED, "{run:?}");
    for part in
        ["FAILED  two passes: under 5 of 5", "out[0] is 1000, not 999", "partials[3] is 232"]
    {
        assert!(run.out.contains(part), "{part:?} is not in {}", run.out);
    }
}

#[test]
fn a_finding_fails_a_test_unless_it_is_suppressed_with_a_reason() {
    let dir = dir(&["fault_plain_add"]);
    let suite = "
ptx = 'fault_plain_add.ptx'
schedules = ['lockstep', 'adversarial']
seeds = [1, 7]
[[test]]
name = 'adds <plainly>'
[[test.launch]]
kernel = 'plain_add'
grid = 2
block = 256
args = ['in:i32:512=ones', 'out:i32:1=zeros']
";
    dir.file("suite.toml", suite);
    let run = dir.run("ptx test suite.toml");
    assert_eq!(run.status, FAILED, "{run:?}");
    assert!(run.out.contains("data race") && run.out.contains("out[0]"), "{}", run.out);

    let known =
        "[[suppress]]\nkind = 'race'\nat = 'fault_plain_add.cu:18'\nreason = 'a demonstration'\n";
    let unused = "[[suppress]]\nkind = 'misaligned'\nreason = 'none'\n";
    dir.file("suite.toml", format!("{suite}{known}{unused}"));
    let run = dir.run("ptx test suite.toml");
    assert_eq!(run.status, PASSED, "{run:?}");
    assert!(run.out.contains("with suppressed findings"), "{}", run.out);
    assert!(run.out.contains("suppression without a finding: misaligned (none)"), "{}", run.out);
    dir.file("suite.toml", format!("{suite}{}", known.replace(":18", ":19")));
    assert_eq!(dir.run("ptx test suite.toml").status, FAILED);
}

#[test]
fn machines_read_the_outcome() {
    let dir = dir(&["fault_plain_add"]);
    let suite = "
ptx = 'fault_plain_add.ptx'
schedules = ['lockstep']
[[test]]
name = 'adds <plainly>'
[[test.launch]]
kernel = 'plain_add'
grid = 2
block = 256
args = ['in:i32:512=ones', 'out:i32:1=zeros']
[test.expect]
out = { values = '511' }
[[test]]
name = 'adds in turn'
[[test.launch]]
kernel = 'plain_add_fixed'
grid = 2
block = 256
args = ['in:i32:512=ones', 'out:i32:1=zeros']
[test.expect]
out = { values = '512' }
";
    dir.file("suite.toml", suite);
    let parse = |text: &str| -> Value {
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    let run = dir.run("ptx test suite.toml -f json");
    let document = parse(&run.out);
    assert_eq!((run.status, &document["passed"]), (FAILED, &Value::Bool(false)));
    assert_eq!(document["cases"].as_array().unwrap().len(), 2);
    assert_eq!(document["cases"][0]["findings"][0]["kind"], "race");

    let run = dir.run("ptx test suite.toml -f sarif");
    let document = parse(&run.out);
    let results = document["runs"][0]["results"].as_array().unwrap();
    assert_eq!((run.status, &document["version"]), (FAILED, &Value::from("2.1.0")));
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "fault_plain_add.cu");
    assert_eq!(
        (&place["region"]["startLine"], &results[0]["ruleId"]),
        (&Value::from(18), &Value::from("race"))
    );
    let rules = document["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(results.iter().all(|r| rules.iter().any(|rule| rule["id"] == r["ruleId"])));

    let run = dir.run("ptx test suite.toml -f junit -o report.xml");
    assert_eq!(run.status, FAILED);
    assert!(run.out.ends_with("1 passed, 1 failed\n"), "{}", run.out);
    let xml = std::fs::read_to_string(dir.path("report.xml")).unwrap();
    for part in [
        "<testsuites tests=\"2\" failures=\"1\"",
        "name=\"adds &lt;plainly&gt; [lockstep]\"",
        "<failure type=\"race\" message=\"data race\">",
    ] {
        assert!(xml.contains(part), "{part:?} is not in {xml}");
    }
}

#[test]
fn symbols_are_written_by_name() {
    let dir = dir(&["constants"]);
    let line = "ptx run constants.ptx -k weighted -g 1 -b 1 --arg in:f32:8=ones --arg out:f64:1 --arg u32:8 --show out";
    // 0.5 + 1 + ... + 4 is 18.
    assert!(dir.prints(line).contains("out: 1 x f64: 4.5\n"));
    let told = dir.prints(&format!("{line} --set scale:f64:1=2 --set weights:f32:8=1"));
    assert!(told.contains("out: 1 x f64: 16\n"), "{told}");
    let run = dir.run(&format!("{line} --set scales:f64:1=2"));
    assert_eq!(run.status, USAGE, "{run:?}");
    assert!(run.err.contains("no __device__ or __constant__ variable scales"), "{}", run.err);
    let run = dir.run(&format!("{line} --set scale:f64:2=2"));
    assert!(run.status == 1 && run.err.contains("`scale` has 8 bytes, not 16"), "{run:?}");

    let device = "ptx run constants.ptx -k variables -g 1 -b 1 --arg out:i32:5 --show out --set launches:u32:1=41";
    assert!(dir.prints(device).contains("out: 5 x i32: 3 1 41 119 2\n"));
    let suite = "
ptx = 'constants.ptx'
schedules = ['lockstep']
set = ['scale:f64:1=2']
[[test]]
name = 'weights'
set = ['weights:f32:8=1']
[[test.launch]]
kernel = 'weighted'
grid = 1
block = 1
args = ['in:f32:8=ones', 'out:f64:1', 'u32:8']
[test.expect]
out = { values = '16' }
";
    dir.file("suite.toml", suite);
    let run = dir.run("ptx test suite.toml");
    assert_eq!(run.status, PASSED, "{run:?}");
}

/// A constant without a value is zeros, which is rarely what is meant.
#[test]
fn constants_that_nobody_sets_are_told() {
    let dir = Dir::new();
    dir.file(
        "c.ptx",
        ".version 8.0\n.target sm_75\n.address_size 64\n.const .align 4 .f32 factor; .const .align 4 .f32 other;\n\
         .visible .entry k(.param .u64 p) {\n.reg .b64 %d<2>; .reg .f32 %f<2>;\nld.param.u64 %d1, [p];\n\
         ld.const.f32 %f1, [factor];\nst.global.f32 [%d1], %f1;\nret;\n}\n",
    );
    let line = "ptx run c.ptx -g 1 -b 1 --arg out:f32:1 --show out";
    let run = dir.run(line);
    assert!(run.status == PASSED && run.out.contains("out: 1 x f32: 0\n"), "{run:?}");
    assert!(
        run.err.contains("constant factor is not set") && !run.err.contains("other"),
        "{run:?}"
    );
    let run = dir.run(&format!("{line} --set factor:f32:1=3"));
    assert_eq!((run.err.as_str(), run.out.contains("out: 1 x f32: 3\n")), ("", true), "{run:?}");
}

#[test]
fn a_suite_that_cannot_be_run_says_why() {
    let dir = two_pass();
    for (suite, status, part) in [
        ("nonsense", USAGE, "suite.toml"),
        ("ptx = 'two_pass.ptx'", USAGE, "no [[test]]"),
        (&TWO_PASS.replace("two_pass.ptx", "none.ptx"), 1, "none.ptx"),
        (&TWO_PASS.replace("kernel = 'two_pass_f32'", "kernel = 'none'"), 1, "none"),
        (&TWO_PASS.replace("partials.npy", "none.npy"), 1, "none.npy"),
        (&TWO_PASS.replace("'u64:1000'", "'u64:many'"), USAGE, "many"),
        (&TWO_PASS.replace(", 'u64:4'", ""), 1, "arguments"),
    ] {
        dir.file("suite.toml", suite);
        let run = dir.run("ptx test suite.toml");
        assert!(
            run.status == status && run.out.is_empty() && run.err.contains(part),
            "{part}: {run:?}"
        );
    }
    assert_eq!(dir.run("ptx test none.toml").status, 1);
    // An endless kernel ends at the limit, and its test fails.
    dir.file("suite.toml", format!("limit = 10\n{TWO_PASS}"));
    let run = dir.run("ptx test suite.toml");
    assert!(
        run.status == FAILED && run.out.contains("the limit of 10 warp instructions"),
        "{run:?}"
    );
}

/// `turn(texture, surface)` mirrors the rows of a table of 4 columns; `tile(map, out)` copies a tile of 4 times 2 floats, and `pixels(map, out)` two pixels
/// of an image of 4 channels, from one to the left of its first.
fn described() -> Dir {
    let copy = |name: &str, what: &str| {
        format!(
            ".visible .entry {name}(.param .align 64 .b8 m[128], .param .u64 o) {{
             .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f;
             mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @!%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
             mov.u64 %d1, m; cvta.param.u64 %d1, %d1; mov.u32 %r2, room; @%p1 bra wait;
             mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32; {what};
             wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;
             ld.param.u64 %d2, [o]; mul.wide.u32 %d3, %r1, 4; add.u64 %d2, %d2, %d3;
             shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2; ld.shared.f32 %f, [%r3]; st.global.f32 [%d2], %f; ret; }}"
        )
    };
    let tensor = |rank: u32, mode: &str, rest: &str| {
        format!(
            "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%r2], {rest}"
        )
    };
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 128 .b8 room[128]; .shared .align 8 .b64 bar;
         .visible .entry turn(.param .u64 t, .param .u64 s) {{ .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .f32 %f<5>;
         ld.param.u64 %d1, [t]; ld.param.u64 %d2, [s]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; shr.u32 %r3, %r1, 2;
         tex.2d.v4.f32.s32 {{%f1, %f2, %f3, %f4}}, [%d1, {{%r2, %r3}}];
         xor.b32 %r4, %r2, 3; shl.b32 %r4, %r4, 2; sust.b.2d.b32.trap [%d2, {{%r4, %r3}}], {{%f1}}; ret; }}
         {}\n{}",
        copy("tile", &tensor(2, "tile", "[%d1, {0, 1}], [bar]")),
        copy("pixels", &tensor(3, "im2col", "[%d1, {0, -1, 0}], [bar], {0}")),
    );
    let dir = Dir::new();
    dir.file("described.ptx", text);
    dir
}

#[test]
fn textures_surfaces_and_tensor_maps_are_of_buffers() {
    let dir = described();
    let run = |rest: &str| dir.prints(&format!("ptx run described.ptx -g 1 {rest} --show out"));
    let turned =
        run("-k turn -b 8 --arg texture:4x2:in:f32=1,2,3,4,5,6,7,8 --arg surface:4x2:out:f32:8");
    assert!(turned.ends_with("clean\n\nout: 8 x f32: 4 3 2 1 8 7 6 5\n"), "{turned}");
    let tile = run("-k tile -b 8 --arg tensormap:4x5/4x2:in:f32:20=range --arg out:f32:8");
    assert!(tile.ends_with("clean\n\nout: 8 x f32: 4 5 6 7 8 9 10 11\n"), "{tile}");
    let pixels = "tensormap:4x3x1/4x2,lower=-1,upper=0:in:f32:12=5..";
    let pixels = run(&format!("-k pixels -b 8 --arg {pixels} --arg out:f32:8"));
    assert!(pixels.ends_with("clean\n\nout: 8 x f32: 0 0 0 0 5 6 7 8\n"), "{pixels}");

    let wrong =
        dir.fails(USAGE, "ptx run described.ptx -k turn -g 1 -b 8 --arg texture:4x2,wide:in:f32:8");
    assert!(wrong.contains("\"wide\" is not parts=2"), "{wrong}");
}

/// Memory of a texture stays from launch to launch, is compared as any, and what is outside of a surface is found.
#[test]
fn a_suite_has_textures_surfaces_and_tensor_maps() {
    let dir = described();
    let suite = "
ptx = 'described.ptx'
seeds = 1
[[test]]
name = 'turned twice'
[[test.launch]]
kernel = 'turn'
block = 8
grid = 1
args = ['texture:4x2:in:f32=1,2,3,4,5,6,7,8', 'surface:4x2:out:f32:8']
[[test.launch]]
kernel = 'turn'
block = 8
grid = 1
args = ['texture:4x2:out', 'surface:4x2:back:f32:8']
[[test.launch]]
kernel = 'tile'
block = 8
grid = 1
args = ['tensormap:4x2/4x2:back', 'tile:f32:8']
[test.expect]
out = { values = '4,3,2,1,8,7,6,5' }
back = { values = '1,2,3,4,5,6,7,8' }
tile = { values = '5,6,7,8,0,0,0,0' }
";
    dir.file("suite.toml", suite);
    let run = dir.run("ptx test suite.toml");
    assert_eq!((run.status, run.err.as_str()), (PASSED, ""), "{run:?}");
    assert_eq!(run.out, "ok      turned twice: 3 schedules\n3 passed, 0 failed\n");
    dir.file("suite.toml", suite.replace("surface:4x2:back:f32:8", "surface:3x2:back:f32:8=zeros"));
    let run = dir.run("ptx test suite.toml");
    assert_eq!(run.status, FAILED, "{run:?}");
    assert!(run.out.contains("access out of bounds"), "{}", run.out);
}
