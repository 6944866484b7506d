//! Topics as the sources of declared flows.

use super::cluster::{Cluster, ask, store};
use crate::Store;
use crate::flow::{FlowState, Runner, Trigger, Variable};
use crate::source::kafka::Until;
use std::ops::ControlFlow;
use std::sync::Arc;

fn declare(store: &Store, cluster: &Cluster, settings: &str) {
    let brokers = cluster.mock.bootstrap_servers();
    let flow = format!(
        "CREATE OR REPLACE FLOW f AS AUTO CDC INTO t \
         FROM STREAM kafka('rows', brokers => '{brokers}', format => 'json'{settings}) KEYS (id)"
    );
    store.sql(&flow).unwrap();
}

fn runner(store: &Store, until: Until) -> Runner {
    let variable: Variable = Arc::new(|name| (name == "WHO").then(|| "me".to_owned()));
    Runner::new(store, &[], &variable, until).unwrap()
}

fn turn(store: &Store, runner: &mut Runner, most: u64) -> Option<Trigger> {
    runner.flows()[0].trigger(store, most, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_run_to_the_end_takes_what_there_is_and_the_next_goes_on() {
    let cluster = Cluster::with(&[("rows", 2)]);
    cluster.put_rows("rows", 0, 0..20);
    cluster.put_rows("rows", 1, 20..30);
    let (_dir, store) = store();
    declare(&store, &cluster, "");
    let mut once = runner(&store, Until::CaughtUp);
    let first = turn(&store, &mut once, 12).unwrap();
    assert_eq!((first.report.delivered, first.more), (12, true));
    let rest = turn(&store, &mut once, u64::MAX).unwrap();
    assert_eq!((rest.report.delivered, rest.more), (18, false));
    cluster.put_rows("rows", 1, 30..33);
    assert_eq!(turn(&store, &mut once, u64::MAX).unwrap().report.delivered, 3);
    assert_eq!(turn(&store, &mut runner(&store, Until::CaughtUp), u64::MAX).unwrap().report.delivered, 0);
    assert_eq!(ask(&store, "SELECT count(*), count(DISTINCT id) FROM history('t')"), ["33 33"]);
}

#[test]
fn a_run_that_goes_on_takes_what_comes_and_keeps_its_connection() {
    let cluster = Cluster::with(&[("rows", 2)]);
    let (_dir, store) = store();
    declare(&store, &cluster, "");
    let mut on = runner(&store, Until::Stopped);
    let mut taken = |wanted: u64| {
        let mut sum = 0;
        for _ in 0..100 {
            sum += turn(&store, &mut on, u64::MAX).unwrap().report.delivered;
            if sum >= wanted {
                break;
            }
        }
        sum
    };
    assert_eq!(taken(1), 0, "nothing there yet");
    cluster.put_rows("rows", 0, 0..5);
    assert_eq!(taken(5), 5);
    cluster.put_rows("rows", 1, 5..9);
    assert_eq!(taken(4), 4);
    assert_eq!(ask(&store, "SELECT count(*) FROM t"), ["9"]);
}

#[test]
fn settings_reach_the_brokers_and_secrets_stay_outside() {
    let cluster = Cluster::with(&[("rows", 1)]);
    cluster.put_rows("rows", 0, 0..10);
    let (dir, store) = store();
    let file = dir.path().join("k.properties");
    std::fs::write(&file, "client.id=${WHO}\nsasl.password=canary\n").unwrap();
    declare(&store, &cluster, &format!(", from => '-4', properties => '{}'", file.display()));
    let taken = turn(&store, &mut runner(&store, Until::CaughtUp), u64::MAX).unwrap();
    assert_eq!(taken.report.delivered, 4);
    assert!(!ask(&store, "SELECT statement FROM flows()")[0].contains("canary"));
    std::fs::write(&file, "client.id=${NOBODY}\n").unwrap();
    let mut refused = runner(&store, Until::CaughtUp);
    assert!(turn(&store, &mut refused, u64::MAX).is_none());
    match refused.flows()[0].state() {
        FlowState::Stopped(error) => assert!(error.message().contains("NOBODY"), "{error}"),
        state => panic!("{state:?}"),
    }
    std::fs::remove_file(&file).unwrap();
    let mut gone = runner(&store, Until::CaughtUp);
    assert!(turn(&store, &mut gone, u64::MAX).is_none());
    assert!(
        matches!(gone.flows()[0].state(), FlowState::Down { error, .. } if error.message().contains("k.properties"))
    );
}
