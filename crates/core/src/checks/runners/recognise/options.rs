//! What the words behind a runner mean: one row of options per runner.
//!
//! An option without a row is taken for a switch. That is wrong only for one with a value that stands
//! apart, whose value is then read as a place; the control goes by the files that named tests, not by
//! places, so nothing rests on it.

use super::shell::Word;
use crate::task::runner::{ChosenPlace, Compared, Flag, NameFilter, Runner, Said};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    Name(Compared),
    Place,
    LeftOut,
    Program,
    Stop,
    Report,
    /// A value that says nothing here.
    Value,
    Nothing,
}

/// Options with one meaning: `=` behind a name says that it takes a value.
pub type Row = (&'static str, Means);

use Means::{LeftOut, Name as By, Nothing, Place as At, Program, Report, Stop, Value};

const UNITTEST: &[Row] = &[
    ("-k=", By(Compared::Pattern)),
    ("-f --failfast", Stop),
    ("-v --verbose -q --quiet", Report),
    ("-s= --start-directory=", At),
    (
        "-p= --pattern= -t= --top-level-directory= --durations=",
        Value,
    ),
    ("-h --help", Nothing),
];
const PYTEST: &[Row] = &[
    ("-k= -m=", By(Compared::Expression)),
    ("-x --exitfirst --maxfail= --stepwise --sw", Stop),
    ("--deselect= --ignore= --ignore-glob=", LeftOut),
    ("--lf --last-failed", By(Compared::Expression)),
    (
        "-q --quiet -qq -qqq --junitxml= --junit-xml= -r= --tb= --report-log= --no-header --no-summary",
        Report,
    ),
    (
        "-c= -p= -n= -W= -o= --rootdir= --confcutdir= --basetemp= --cov-report= --cov-config= --timeout= --dist= --durations= --import-mode= --override-ini= --color= --log-level= --log-cli-level=",
        Value,
    ),
    (
        "--collect-only --co -h --help --version --fixtures --markers",
        Nothing,
    ),
];
const CARGO: &[Row] = &[
    (
        "--test= --bin= --example= --bench= -p= --package= --exclude= --lib --bins --tests --doc --examples --benches",
        Program,
    ),
    ("--no-fail-fast", Report),
    ("-q --quiet --message-format= --color= --format=", Report),
    (
        "-F= --features= --target= --target-dir= --manifest-path= --profile= -j= --jobs= -Z= --config= --test-threads= --logfile= --cargo-profile= -P=",
        Value,
    ),
    ("--skip=", LeftOut),
    ("-E= --filterset= --filter-expr=", By(Compared::Expression)),
    ("--fail-fast --ff --max-fail=", Stop),
    (
        "--retries= --partition= --run-ignored= --status-level= --final-status-level= --failure-output= --success-output= --tool-config-file= --archive-file=",
        Value,
    ),
    ("--no-run --list -h --help", Nothing),
];
const NODE: &[Row] = &[
    ("--test-name-pattern=", By(Compared::Pattern)),
    ("--test-skip-pattern=", LeftOut),
    ("--test-only", By(Compared::Expression)),
    ("--test-reporter= --test-reporter-destination=", Report),
    (
        "-r= --require= --import= --loader= --experimental-loader= -C= --conditions= --env-file= --test-concurrency= --test-timeout= --test-shard= --stack-size= --test-isolation= --experimental-test-isolation=",
        Value,
    ),
    ("--watch", Nothing),
];
const MOCHA: &[Row] = &[
    ("-f= --fgrep=", By(Compared::Part)),
    ("-g= --grep=", By(Compared::Pattern)),
    ("-i --invert", By(Compared::Expression)),
    ("-b --bail", Stop),
    (
        "-R= --reporter= -O= --reporter-option= --reporter-options=",
        Report,
    ),
    ("--spec=", At),
    ("--ignore= --exclude=", LeftOut),
    (
        "-r= --require= --config= --package= --extension= --file= -t= --timeout= -s= --slow= -u= --ui= -j= --jobs= --retries= --opts= --watch-files= --loader= --import=",
        Value,
    ),
    (
        "-w --watch --list-files --dry-run --list-interfaces --list-reporters -h --help",
        Nothing,
    ),
];
const JEST: &[Row] = &[
    ("-t= --testNamePattern=", By(Compared::Pattern)),
    ("-b --bail --bail=", Stop),
    (
        "--testPathPattern= --testPathPatterns= --rootDir= --roots=",
        At,
    ),
    ("--testPathIgnorePatterns=", LeftOut),
    (
        "--selectProjects= --ignoreProjects= --findRelatedTests -o --onlyChanged --onlyFailures -f --lastCommit --shard=",
        Program,
    ),
    (
        "--json --outputFile= --reporters= --silent --verbose",
        Report,
    ),
    (
        "-c= --config= -w= --maxWorkers= --env= --testEnvironment= --coverageDirectory= --coverageReporters= --testTimeout= --projects= --seed= --testRunner= --workerIdleMemoryLimit=",
        Value,
    ),
    (
        "--watch --watchAll --listTests --showConfig -h --help --clearCache",
        Nothing,
    ),
];
const VITEST: &[Row] = &[
    ("-t= --testNamePattern=", By(Compared::Pattern)),
    ("--bail=", Stop),
    ("--project= --shard= --changed --changed=", Program),
    ("--exclude=", LeftOut),
    ("--dir= -r= --root=", At),
    ("--reporter= --outputFile= --silent", Report),
    (
        "-c= --config= --pool= --environment= --maxWorkers= --minWorkers= --testTimeout= --mode= --retry= --coverage.provider= --coverage.reporter=",
        Value,
    ),
    ("-w --watch --ui -h --help --mergeReports", Nothing),
];
const AVA: &[Row] = &[
    ("-m= --match=", By(Compared::Pattern)),
    ("--fail-fast", Stop),
    ("-t --tap -v --verbose", Report),
    (
        "--config= -c= --concurrency= -T= --timeout= --node-arguments=",
        Value,
    ),
    ("-w --watch -h --help debug", Nothing),
];
const TAP: &[Row] = &[
    ("-g= --grep=", By(Compared::Pattern)),
    ("-O --only", By(Compared::Expression)),
    ("-b --bail", Stop),
    (
        "-R= --reporter= -o= --output-file= -d= --output-dir= --reporter-file=",
        Report,
    ),
    (
        "-j= --jobs= -t= --timeout= --coverage-report= --node-arg= --test-arg= --before= --after= --plugin= -r= --require= --import=",
        Value,
    ),
    ("-i= --ignore=", LeftOut),
    ("-w --watch -h --help --no-only", Nothing),
];
const GO: &[Row] = &[
    ("-run= --run=", By(Compared::Pattern)),
    ("-skip= --skip=", LeftOut),
    ("-failfast --failfast", Stop),
    ("-v -json --json", Report),
    (
        "-tags= -count= -timeout= -race -cpu= -parallel= -coverprofile= -covermode= -coverpkg= -bench= -benchtime= -mod= -modfile= -ldflags= -gcflags= -p= -exec= -o= -shuffle= -vet= -C=",
        Value,
    ),
    ("-c -n -list=", Nothing),
];

pub fn rows(runner: Runner) -> &'static [Row] {
    match runner {
        Runner::Unittest => UNITTEST,
        Runner::Pytest => PYTEST,
        Runner::Cargo => CARGO,
        Runner::Node => NODE,
        Runner::Mocha => MOCHA,
        Runner::Jest => JEST,
        Runner::Vitest => VITEST,
        Runner::Ava => AVA,
        Runner::Tap | Runner::Tape => TAP,
        Runner::Go => GO,
    }
}

/// Which options of a runner have a meaning, each as it is written, `=` behind those with a value.
pub fn spelled(runner: Runner, wanted: impl Fn(Means) -> bool) -> Vec<&'static str> {
    let fitting = rows(runner).iter().filter(|(_, means)| wanted(*means));
    fitting.flat_map(|(names, _)| names.split(' ')).collect()
}

/// The meaning of an option, whether its value stands apart, and the value it holds itself.
fn meaning(runner: Runner, word: &str) -> Option<(Means, bool, Option<String>)> {
    let (name, held) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    for (names, means) in rows(runner) {
        for row in names.split(' ') {
            let (row, valued) = row
                .strip_suffix('=')
                .map_or((row, false), |row| (row, true));
            if row == name {
                return Some((*means, valued && held.is_none(), held));
            }
            // `-kWORD`: only where options are one letter with one dash.
            let attached =
                valued && row.len() == 2 && runner != Runner::Go && !name.starts_with("--");
            if let Some(value) = word.strip_prefix(row).filter(|_| attached) {
                return Some((*means, false, Some(value.to_owned())));
            }
        }
    }
    None
}

/// A cluster of switches such as `-xvs`: does one of them stop early?
fn cluster_stops(runner: Runner, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let switches = matches!(runner, Runner::Unittest | Runner::Pytest | Runner::Mocha);
    let stop = if runner == Runner::Pytest {
        'x'
    } else if runner == Runner::Mocha {
        'b'
    } else {
        'f'
    };
    switches
        && letters.len() > 1
        && letters.bytes().all(|b| b.is_ascii_lowercase())
        && letters
            .chars()
            .all(|c| matches!(c, 'v' | 'q' | 's' | 'x' | 'f' | 'b' | 'c' | 'l'))
        && letters.contains(stop)
}

/// Reads the words behind a runner.
pub fn read(runner: Runner, words: &[Word]) -> Said {
    let mut said = Said::default();
    let mut at = 0;
    let mut behind = false;
    while let Some(word) = words.get(at) {
        at += 1;
        said.selection.computed |= word.computed;
        if word.text == "--" {
            behind = true;
            continue;
        }
        // What follows is the test program's own.
        if runner == Runner::Go && matches!(word.text.as_str(), "-args" | "--args") {
            break;
        }
        let options_here = !behind || runner == Runner::Cargo;
        if !(options_here && word.text.starts_with('-') && word.text.len() > 1) {
            positional(runner, &mut said, word, behind);
            continue;
        }
        if cluster_stops(runner, &word.text) {
            said.early_stop.push(flag(&[word]));
            continue;
        }
        let Some((means, apart, held)) = meaning(runner, &word.text) else {
            continue;
        };
        let value = words.get(at).filter(|_| apart);
        at += usize::from(value.is_some());
        let used: Vec<&Word> = [Some(word), value].into_iter().flatten().collect();
        said.selection.computed |= value.is_some_and(|value| value.computed);
        let text = held
            .or(value.map(|value| value.text.clone()))
            .unwrap_or_default();
        note(&mut said, means, flag(&used), &text, behind);
    }
    said
}

fn note(said: &mut Said, means: Means, flag: Flag, text: &str, behind: bool) {
    match means {
        // `discover -s DIR` looks there; without `discover` the letter says nothing.
        Means::Place => said.selection.places.push(place(text, flag)),
        Means::Name(compared) => said.selection.names.push(NameFilter {
            text: text.to_owned(),
            compared,
            flag,
        }),
        Means::LeftOut => said.selection.left_out.push(flag),
        Means::Program if !behind => said.selection.programs.push(flag),
        // `--maxfail=0` and `--bail=0` stop nothing, `--watchAll=false` watches nothing.
        Means::Stop if matches!(text, "0" | "false") => {}
        Means::Nothing if text == "false" => {}
        Means::Stop => said.early_stop.push(flag),
        Means::Report => said.reporters.push(flag),
        Means::Nothing => said.runs_nothing = true,
        Means::Value | Means::Program => {}
    }
}

fn positional(runner: Runner, said: &mut Said, word: &Word, behind: bool) {
    let flag = flag(&[word]);
    let by_name = |compared| NameFilter {
        text: word.text.clone(),
        compared,
        flag: flag.clone(),
    };
    match runner {
        Runner::Unittest if word.text == "discover" => {}
        Runner::Unittest if word.text.ends_with(".py") || word.text.contains('/') => {
            said.selection.places.push(place(&word.text, flag));
        }
        Runner::Unittest => said.selection.names.push(by_name(Compared::Whole)),
        Runner::Cargo => said.selection.names.push(by_name(Compared::Part)),
        Runner::Vitest if !behind && matches!(word.text.as_str(), "run" | "related" | "dev") => {}
        Runner::Vitest if !behind && matches!(word.text.as_str(), "watch" | "bench" | "list") => {
            said.runs_nothing = true;
        }
        Runner::Tap if !behind && word.text == "run" => {}
        _ => said.selection.places.push(place(&word.text, flag)),
    }
}

fn place(text: &str, flag: Flag) -> ChosenPlace {
    let (path, inside) = match text.split_once("::") {
        Some((path, inside)) => (path, Some(inside.to_owned())),
        None => (text, None),
    };
    ChosenPlace {
        path: path.to_owned(),
        inside,
        flag,
    }
}

pub fn flag(words: &[&Word]) -> Flag {
    let start = words.first().and_then(|word| word.place);
    let end = words.last().and_then(|word| word.place);
    Flag {
        words: words.iter().map(|word| word.text.clone()).collect(),
        place: start.zip(end).map(|((start, _), (_, end))| (start, end)),
    }
}
