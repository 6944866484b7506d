use super::*;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// What the server does with a request.
pub(in crate::source) enum Does {
    Answer(u16, &'static str),
    /// Bytes that are no answer.
    Raw(&'static str),
    /// Nothing for that long.
    Wait(Duration),
}

/// A registry on loopback that does what `what` says to the request line and header lines of each request,
/// which are counted from 0.
pub(in crate::source) fn serve(what: impl Fn(usize, &str) -> Does + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let request = request(&stream);
            match what(n, &request) {
                Does::Answer(status, body) => {
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                    );
                    let _ = stream.write_all((head + body).as_bytes());
                }
                Does::Raw(bytes) => drop(stream.write_all(bytes.as_bytes())),
                Does::Wait(time) => std::thread::sleep(time),
            }
        }
    });
    url
}

fn request(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines();
    let mut out = String::new();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            break;
        }
        out += &line;
        out.push('\n');
    }
    out
}

fn client(url: &str) -> RegistryClient {
    let patience =
        Patience { answer: Duration::from_millis(300), requests: 3, pause: Duration::from_millis(1) };
    RegistryClient::new(url.parse().unwrap(), patience)
}

fn unreachable(found: Result<Arc<SchemaText>, NoSchema>) -> String {
    match found {
        Err(NoSchema::Unreachable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn unknown(found: Result<Arc<SchemaText>, NoSchema>) -> String {
    match found {
        Err(NoSchema::Unknown(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_schema_is_asked_for_by_its_id_once() {
    let url = serve(|n, request| {
        assert!(n == 0 && request.starts_with("GET /schemas/ids/7 "), "{request}");
        Does::Answer(200, r#"{"schema":"\"int\""}"#)
    });
    let client = client(&url);
    for _ in 0..3 {
        assert_eq!(client.schema(7).unwrap().schema, "\"int\"");
    }
}

#[test]
fn a_schema_that_is_not_there_is_unknown_and_not_asked_for_again_and_again() {
    let url = serve(|n, _| {
        assert_eq!(n, 0);
        Does::Answer(404, r#"{"error_code":40403,"message":"Schema 9 not found"}"#)
    });
    let reason = unknown(client(&url).schema(9));
    assert_eq!(reason, format!("the registry {url} has no schema with the id 9"));
}

#[test]
fn failures_are_asked_about_again_and_pass() {
    let url = serve(|n, _| match n {
        0 => Does::Answer(500, "oops"),
        1 => Does::Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"sch"),
        _ => Does::Answer(200, r#"{"schema":"\"long\""}"#),
    });
    assert_eq!(client(&url).schema(1).unwrap().schema, "\"long\"");
}

#[test]
fn failures_that_do_not_pass_are_an_error_after_some_requests() {
    let url = serve(|n, _| {
        assert!(n < 3, "request {n}");
        Does::Answer(503, "")
    });
    assert_eq!(
        unreachable(client(&url).schema(1)),
        format!("the registry {url} answers with status 503, 3 times")
    );
    let url = serve(|_, _| Does::Answer(200, "<html>"));
    assert!(unreachable(client(&url).schema(1)).contains("answers what is no JSON (`<html>`)"));
    let url = serve(|_, _| Does::Answer(200, "{}"));
    assert!(unreachable(client(&url).schema(1)).contains("answers what is no schema"));
    let url = serve(|_, _| Does::Raw("nonsense\r\n\r\n"));
    assert!(unreachable(client(&url).schema(1)).contains("does not answer"));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(unreachable(client(&format!("http://{nobody}")).schema(1)).contains("does not answer"));
}

#[test]
fn a_slow_registry_is_waited_for_so_long_and_no_longer() {
    let url = serve(|_, _| Does::Wait(Duration::from_secs(5)));
    let from = Instant::now();
    assert!(unreachable(client(&url).schema(1)).contains("does not answer"));
    assert!(from.elapsed() < Duration::from_secs(4), "{:?}", from.elapsed());
}

#[test]
fn name_and_password_are_sent_and_never_shown_or_stored() {
    let url = serve(|n, request| {
        // us:p@ss
        let has = request.to_ascii_lowercase().contains("authorization: basic dxm6cebzcw==");
        assert!(has || n == 1, "{request}");
        if has { Does::Answer(200, r#"{"schema":"\"int\""}"#) } else { Does::Answer(401, "") }
    });
    let registry: Registry = url.replace("http://", "http://us:p%40ss@").parse().unwrap();
    assert_eq!(registry, Registry { url: url.clone(), auth: Some("us:p@ss".into()) });
    assert!(!format!("{registry:?}{}", serde_json::json!(registry)).contains("p@ss"));
    assert!(RegistryClient::new(registry, Patience::default()).schema(1).is_ok());
    let refused = unreachable(client(&url).schema(1));
    assert!(refused.contains("refuses to answer (status 401)"), "{refused}");
}

#[test]
fn references_are_asked_for_by_subject_and_version() {
    let url = serve(|_, request| match request.split(' ').nth(1).unwrap() {
        "/schemas/ids/1" => Does::Answer(
            200,
            r#"{"schema":"C","references":[{"name":"b","subject":"b/x","version":2},{"name":"a","subject":"a","version":1}]}"#,
        ),
        "/subjects/b%2Fx/versions/2" => {
            Does::Answer(200, r#"{"schema":"B","references":[{"name":"a","subject":"a","version":1}]}"#)
        }
        "/subjects/a/versions/1" => Does::Answer(200, r#"{"schema":"A"}"#),
        "/schemas/ids/2" => {
            Does::Answer(200, r#"{"schema":"D","references":[{"name":"x","subject":"x","version":1}]}"#)
        }
        _ => Does::Answer(404, r#"{"error_code":40401}"#),
    });
    assert_eq!(client(&url).schema(1).unwrap().references, ["A", "B"]);
    assert!(unknown(client(&url).schema(2)).contains("refers to version 1 of `x`"));
}

#[test]
fn apicurio_is_asked_its_own_way() {
    let url = serve(|_, request| match request.split(' ').nth(1).unwrap() {
        "/ids/globalIds/3?dereference=true" => Does::Answer(200, r#"{"type":"int"}"#),
        _ => Does::Answer(404, "no such path"),
    });
    assert_eq!(client(&url).schema(3).unwrap().schema, r#"{"type":"int"}"#);
    assert!(unknown(client(&url).schema(4)).contains("no schema with the id 4"));
}

#[test]
fn what_is_no_address_is_refused() {
    for text in ["localhost:8081", "ftp://x", "http://", ""] {
        assert!(text.parse::<Registry>().is_err(), "{text}");
    }
    let registry: Registry = "https://h:1/base/".parse().unwrap();
    assert_eq!((registry.url.as_str(), registry.auth), ("https://h:1/base", None));
    // A sign in the path is none of a password.
    assert_eq!("http://h/a@b".parse::<Registry>().unwrap().auth, None);
}
