use super::question::duration;
use super::*;
use clap::CommandFactory;
use std::time::Duration;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("asof").chain(line.split_whitespace()))
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_examples() {
    for command in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
        let help = command.get_after_help().map(|h| h.to_string()).unwrap_or_default();
        assert!(help.starts_with("Examples:"), "{}", command.get_name());
    }
}

#[test]
fn a_bare_store_opens_the_shell() {
    let cli = parse("shop.asof").unwrap();
    assert!(cli.command.is_none());
    assert_eq!(cli.store.unwrap().to_str(), Some("shop.asof"));
    assert!(matches!(parse("shell shop.asof").unwrap().command, Some(Command::Shell(_))));
}

#[test]
fn every_intake_option_is_understood() {
    let line = "ingest s.asof a b --format flat --table t --key id --key u:x,y --op o --op-map i=insert,u=update \
        --default-op upsert --valid v:ms --valid-end e --tie-break p,q --system s --operation-id oid \
        --absent unchanged --ignore-null-updates all --delete-when d=1 --truncate-when t=1 --columns a,b \
        --zone Europe/Berlin --null-text NA --source-name n --keep-raw --strict --batch 10 \
        --export-to out --export-every 30s --columns-to-update c --header x,y";
    let Some(Command::Ingest(args)) = parse(line).unwrap().command else { panic!("not ingest") };
    assert_eq!(args.places, ["s.asof", "a", "b"]);
    assert_eq!(args.key, ["id", "u:x,y"]);
    assert_eq!(args.operation.op_map, ["i=insert", "u=update"]);
    assert_eq!(args.time.tie_break, ["p", "q"]);
    assert_eq!(args.content.header, Some(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(args.rounds.export_every, Some(Duration::from_secs(30)));
    assert!(args.flow.strict && args.flow.keep_raw);
}

#[test]
fn sql_takes_statements_from_one_place() {
    assert!(parse("sql s -c select -f q.sql").is_err());
    let Some(Command::Sql(args)) =
        parse("sql s -c one -c two -p k=v=w --timeout 5m -o ndjson").unwrap().command
    else {
        panic!("not sql")
    };
    assert_eq!(args.command, ["one", "two"]);
    assert_eq!(args.param, [("k".to_owned(), "v=w".to_owned())]);
    assert_eq!(args.timeout, Some(Duration::from_secs(300)));
    assert_eq!(parse("sql s -o xml").unwrap_err().exit_code(), 2);
}

#[test]
fn durations_need_a_unit() {
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    for wrong in
        ["", "30", "s", "1.5s", "-1s", "5 parsecs", "0s", "99999999999999999999s", "18446744073709551615h"]
    {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn memory_is_a_size_for_every_command() {
    assert_eq!(parse("shop.asof").unwrap().memory, None);
    for line in ["sql s q --memory 512MiB", "ingest s a --memory 512MiB", "--memory 512MiB shop.asof"] {
        assert_eq!(parse(line).unwrap().memory.map(|m| m.bytes()), Some(512 << 20), "{line}");
    }
    for (size, why) in [("1", "64MB is the least"), ("much", "no size of memory")] {
        let error = parse(&format!("sql s q --memory {size}")).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn every_option_of_all_commands_may_stand_before_or_behind_the_command() {
    let program = Cli::command();
    let mut checked = 0;
    for option in program.get_arguments().filter(|a| a.is_global_set()) {
        let long = option.get_long().expect("an option without a long name");
        let mut words = vec![format!("--{long}")];
        words.extend(option.get_action().takes_values().then(|| "512MiB".to_owned()));
        let mut forms = vec![words.join(" ")];
        forms.extend(option.get_short().map(|short| format!("-{short}")));
        for form in forms {
            for line in [
                format!("{form} sql s.asof q"),
                format!("sql {form} s.asof q"),
                format!("sql s.asof q {form}"),
            ] {
                let cli = parse(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
                assert!(matches!(cli.command, Some(Command::Sql(_))), "{line}");
                let given = [("quiet", cli.quiet), ("json", cli.json), ("memory", cli.memory.is_some())];
                let given: Vec<&str> = given.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
                assert_eq!(given, [long], "{line}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 12, "{checked}");
}
