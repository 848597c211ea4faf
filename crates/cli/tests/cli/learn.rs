//! `warpfold learn`: the course, as a new user takes it.

use crate::common::{Dir, Run};

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn a_lesson_is_read_predicted_and_kept() {
    let dir = Dir::new();
    let list = dir.prints("learn --progress p.json");
    assert_says(
        &list,
        &["1      ┆ Threads, blocks, grids", "10     ┆ To the engine", "next: warpfold learn 1"],
    );
    let text = dir.prints("learn 2");
    assert_says(&text, &["2. A tree with barriers", "Predict: ", "learn 2 --predict NUMBER"]);
    let wrong = dir.prints("learn 2 --predict 8 --progress p.json");
    assert_says(&wrong, &["found 64, predicted 8: not as predicted", "log2(256) = 8 levels"]);
    let right = dir.prints("learn 1 --predict 26 --progress p.json");
    assert_says(
        &right,
        &["found 26, predicted 26: as predicted", "$ warpfold ladder run interleaved"],
    );
    let list = dir.prints("learn --progress p.json");
    let of = |lesson: &str| list.lines().find(|l| l.contains(lesson)).unwrap();
    assert!(of("Threads, blocks").contains("right") && of("A tree").contains("tried"), "{list}");
    assert!(!of("Banks").contains("tried"), "{list}");
    assert_eq!(
        std::fs::read_to_string(dir.path("p.json")).unwrap(),
        "{\"predicted\":[1,2],\"right\":[1],\"solved\":[]}\n"
    );
}

#[test]
fn exercises_are_handed_out_and_checked() {
    let dir = Dir::new();
    dir.run("learn exercise 1 -o one.cu").success();
    let text = std::fs::read_to_string(dir.path("one.cu")).unwrap();
    assert_says(&text, &["HOLE", "extern \"C\" __global__ void sum"]);
    assert_eq!(dir.prints("learn exercise 1"), text);
    // A kernel in PTX that leaves nothing needs no compiler to be wrong.
    let nothing = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .visible .entry sum(.param .u64 a, .param .u64 b, .param .u32 c) { ret; }\n";
    dir.file("nothing.ptx", nothing);
    let run = dir.run("learn check 1 nothing.ptx --progress p.json -q");
    assert_eq!(run.status, 3, "{}", run.err);
    assert_says(
        &run.out,
        &["wrong: the smallest case that fails is 1 element in 1 block of 32 threads"],
    );
    assert!(!dir.path("p.json").exists(), "nothing is solved");
    // From the source, where there is a compiler.
    let hole = "    // HOLE: add the elements from begin on, as many as there are\n";
    let loop_of =
        |end: &str| format!("    for (unsigned i = begin; {end}; ++i)\n        sum += in[i];\n");
    dir.file("right.cu", text.replace(hole, &loop_of("i < n && i < begin + blockDim.x")));
    dir.file("wrong.cu", text.replace(hole, &loop_of("i < begin + blockDim.x")));
    let run = dir.run("learn check 1 right.cu --progress p.json -q");
    if run.status == 1 && run.err.contains("NVRTC") {
        assert_says(&run.err, &["hint: ", "WARPFOLD_NVRTC", "--fetch-nvrtc"]);
        println!("SKIPPED: {}", run.err);
        return;
    }
    assert_says(&run.success(), &["solved: lesson 1, "]);
    assert_says(&dir.prints("learn --progress p.json"), &["next: warpfold learn 2"]);
    let run = dir.run("learn check 1 wrong.cu --progress p.json -q");
    assert_eq!(run.status, 3, "{}", run.err);
    assert_says(&run.out, &["wrong: ", "out of bounds"]);
    dir.file("bad.cu", "__global__ void f() { return 1 }");
    assert_says(
        &dir.fails(1, "learn check 1 bad.cu"),
        &["bad.cu(1)", "error: the compiler refuses it"],
    );
}

/// A pip that never brings a wheel is asked three times, and nothing stays that could be taken for a compiler.
#[cfg(target_os = "linux")]
#[test]
fn a_compiler_that_does_not_come() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let cache = dir.path("cache/warpfold/nvrtc");
    let dead = cache.join(".partial-4294967295/wheel");
    std::fs::create_dir(dir.path("bin")).unwrap();
    dir.file("one.cu", "a")
        .file("bin/python3", "#!/bin/sh\necho asked >> asked\necho 'ERROR: cut' >&2\nexit 1\n");
    std::fs::set_permissions(dir.path("bin/python3"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(&dead).unwrap();
    std::fs::set_permissions(&cache, PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = dir.command("learn check 1 one.cu --fetch-nvrtc");
    command.env("XDG_CACHE_HOME", dir.path("cache")).env("PATH", dir.path("bin"));
    let run = Run::from(command.output().unwrap());
    assert_says(&run.err, &["89 MB to download, 227 MB in ", "ERROR: cut (3 attempts)", "hint: "]);
    assert_eq!((run.status, run.err.matches("once more").count()), (1, 2), "{}", run.err);
    assert_eq!(std::fs::read_to_string(dir.path("asked")).unwrap(), "asked\n".repeat(3));
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0);
}

#[test]
fn what_is_no_lesson_and_no_progress() {
    let dir = Dir::new();
    dir.file("p.json", "[7]").file("x.ptx", "nothing").file("bytes.cu", [0xff, 0xfe]);
    dir.file("none.ptx", ".version 8.0\n.target sm_75\n.address_size 64\n");
    for (status, line, parts) in [
        (2, "learn 15", ["no lesson 15", "1 to 14"]),
        (2, "learn exercise 0", ["no lesson 0", "hint: "]),
        (2, "learn --predict 3", ["error: ", "LESSON"]),
        (2, "learn --progress p.json", ["p.json: this is no progress", "--progress"]),
        (1, "learn check 1 x.ptx --progress q.json", ["error: ", "hint: "]),
        (1, "learn check 1 none.cu", ["none.cu", "error: "]),
        (1, "learn check 1 bytes.cu", ["bytes.cu: this is not a text", "error: "]),
        (1, "learn check 1 none.ptx -q", ["there is no kernel in it", "hint: "]),
        (
            2,
            "learn solution 1 --progress none.json",
            ["lesson 1 is not solved yet", "learn check 1"],
        ),
    ] {
        assert_says(&dir.fails(status, line), &parts);
    }
    assert_eq!(std::fs::read_to_string(dir.path("p.json")).unwrap(), "[7]", "it is left alone");
    // Progress that cannot be kept is told, and the lesson goes on.
    let run = dir.run("learn 1 --predict 26 --progress x.ptx/p.json");
    assert_says(&run.err, &["note: progress is not kept: "]);
    assert_says(&run.success(), &["found 26"]);
}
