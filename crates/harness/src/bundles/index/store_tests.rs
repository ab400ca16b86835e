use cto_core::operator::listing::{Again, Listed, ListedState, Summary};
use cto_core::run::event::{Kind, Origin};
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_core::values::verdict::Status;
use cto_core::verify::seal::SealedBy;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const PATIENCE: Duration = Duration::from_millis(100);
const CODES: [Code; 3] = [
    Code::NoDiff,
    Code::Timeout,
    Code::LifecycleTimeoutAfterValidPatch,
];

fn time(second: i64) -> Utc {
    Utc::from_millis(1_767_312_000_000 + second * 1_000).unwrap()
}

fn states() -> impl Strategy<Value = ListedState> {
    let summary = (
        select(vec![Status::Pass, Status::Blocked, Status::Fail]),
        select(vec![Origin::Operator, Origin::Validator, Origin::Ci]),
        select(vec!["alpha", "beta", "alpha-beta"]),
        select(vec!["fake", "codex"]),
        1u8..=6,
        0i64..30,
        proptest::option::of("[a-z'\"%\\n]{0,12}"),
        proptest::collection::vec(select(CODES.to_vec()), 0..3),
    );
    let sealed = summary.prop_map(
        |(status, origin, case, engine, stage, second, failure_reason, blockers)| {
            ListedState::Sealed(Box::new(Summary {
                status,
                kind: Kind::Run,
                origin,
                case_id: case.parse().unwrap(),
                engine: engine.parse().unwrap(),
                stage: Stage::try_from(stage).unwrap(),
                started_at: time(second),
                finished_at: time(second + 3),
                failure_reason,
                blockers,
                again: (second % 3 == 0).then(|| Again {
                    run_id: "20260102T030405Z-quick-k3v9".parse().unwrap(),
                    differs: "other commands, more inputs".into(),
                }),
                sealed_by: (second % 2 == 0).then(|| SealedBy {
                    key_id: Digest::of(case.as_bytes()),
                    signed_at: time(second + 4),
                }),
            }))
        },
    );
    prop_oneof![
        6 => sealed,
        1 => Just(ListedState::Live),
        1 => Just(ListedState::Unsealed),
        1 => Just(ListedState::Foreign),
        1 => "[a-z']{0,9}".prop_map(ListedState::Broken),
        1 => "[a-z']{0,9}".prop_map(ListedState::Unreadable),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let one = (
        states(),
        0i64..30,
        select(vec!["alpha", "beta"]),
        any::<u64>(),
        any::<bool>(),
        proptest::option::of("[0-9.-]{1,20}"),
    );
    proptest::collection::vec(one, 0..24).prop_map(|all| {
        let record = |(at, (state, second, case, inode, is_own_directory, stamp)): (
            usize,
            (ListedState, i64, &str, u64, bool, _),
        )| {
            let run_id =
                RunId::new(time(second), &case.parse().unwrap(), &format!("aaaa{at}")).unwrap();
            Record {
                listed: Listed { run_id, state },
                inode,
                is_own_directory,
                stamp,
            }
        };
        all.into_iter().enumerate().map(record).collect()
    })
}

fn filters() -> impl Strategy<Value = Filter> {
    let maybe = |moment| proptest::option::weighted(0.3, moment);
    (
        proptest::option::weighted(
            0.3,
            select(vec![Status::Pass, Status::Blocked, Status::Fail]),
        ),
        proptest::option::weighted(0.3, select(vec!["fake", "codex", "pi"])),
        proptest::option::weighted(0.3, select(vec!["alpha", "beta", "alpha-beta"])),
        proptest::option::weighted(0.3, select(CODES.to_vec())),
        proptest::option::weighted(0.2, 1u8..=6),
        proptest::option::weighted(
            0.3,
            select(vec![Origin::Operator, Origin::Validator, Origin::Ci]),
        ),
        maybe(0i64..30),
        maybe(0i64..30),
    )
        .prop_map(
            |(status, engine, case, blocker, stage, origin, since, until)| Filter {
                status,
                engine: engine.map(|engine| engine.parse().unwrap()),
                case: case.map(|case| case.parse().unwrap()),
                blocker,
                stage: stage.map(|stage| Stage::try_from(stage).unwrap()),
                origin,
                since: since.map(time),
                until: until.map(time),
            },
        )
}

fn filled(path: &Path, records: &[Record]) -> (Store, i64) {
    let mut store = Store::open(path, PATIENCE).unwrap();
    store.prepare().unwrap();
    let change = store.begin().unwrap();
    let other = change.root(b"/other", |_| false).unwrap().id;
    let root = change.root(b"/runs", |_| false).unwrap().id;
    for id in [other, root] {
        let mut write = change.writer(id).unwrap();
        records.iter().for_each(|record| write(record).unwrap());
    }
    change.commit().unwrap();
    (store, root)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The database and [`Filter::matches`] answer alike, and give back exactly what was written.
    #[test]
    fn the_database_answers_as_core_does(records in records(), questions in proptest::collection::vec((filters(), 0usize..30), 8)) {
        let dir = tempfile::tempdir().unwrap();
        let (store, root) = filled(&dir.path().join("cto.db"), &records);
        let mut newest_first = records;
        newest_first.sort_by_key(|record| std::cmp::Reverse(record.listed.run_id.sort_key()));
        prop_assert_eq!(&store.newest(root, 100).unwrap(), &newest_first);
        let mut volatile = store.volatile(root).unwrap();
        volatile.sort_by_key(|record| std::cmp::Reverse(record.listed.run_id.sort_key()));
        prop_assert_eq!(volatile, newest_first.iter().filter(|record| record.is_volatile()).cloned().collect::<Vec<_>>());
        for (filter, limit) in questions {
            let mut want = newest_first.clone();
            want.retain(|record| filter.matches(&record.listed));
            let total = want.len();
            want.truncate(limit);
            prop_assert_eq!(store.query(root, &filter, limit).unwrap(), (want, total), "{:?}", filter);
        }
    }
}

#[test]
fn the_questions_that_must_be_quick_use_their_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, root) = filled(&dir.path().join("cto.db"), &[]);
    let filter = Filter {
        case: Some("alpha".parse().unwrap()),
        status: Some(Status::Fail),
        engine: Some("fake".parse().unwrap()),
        ..Filter::default()
    };
    let (clause, values) = clause(root, &filter);
    let sql = format!("EXPLAIN QUERY PLAN SELECT key FROM runs WHERE {clause} ORDER BY key DESC");
    let plan: String = store
        .db
        .query_row(&sql, rusqlite::params_from_iter(values), |row| row.get(3))
        .unwrap();
    assert!(
        plan.contains("COVERING INDEX by_case (root=? AND case_id=?)"),
        "{plan}"
    );
}
