use super::*;

const MAY_1: i64 = 1_714_521_600_000_000;

#[test]
fn a1_texts_are_instants_in_utc_unless_they_say_otherwise() {
    let cases = [
        ("2024-05-01", MAY_1),
        ("2024-05-01 00:00:00", MAY_1),
        ("2024-05-01T00:00:00Z", MAY_1),
        ("2024-05-01T02:00:00+02:00", MAY_1),
        ("2024-05-01T00:00:00.000001", MAY_1 + 1),
        ("2024-05-01T00:00:00.0000019", MAY_1 + 1),
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("0001-01-01", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),
    ];
    for (text, us) in cases {
        assert_eq!(parse_point(text), Some(Point::Instant(us)), "{text}");
    }
    for text in ["", " ", "yesterday", "2024-13-01", "2024-05-01T25:00:00", "01/05/2024", "12:00"] {
        assert_eq!(parse_point(text), None, "{text}");
    }
    assert_eq!(parse_point("NOW"), Some(Point::Now));
    assert_eq!(parse_point("42"), Some(Point::Integer(42)));
}

#[test]
fn constants_of_every_type_become_points() {
    use ScalarValue::*;
    let us = |v| point_of_scalar(&v).unwrap();
    assert_eq!(us(TimestampNanosecond(Some(-1), None)), Some(Point::Instant(-1)));
    assert_eq!(us(TimestampSecond(Some(1), Some("UTC".into()))), Some(Point::Instant(1_000_000)));
    assert_eq!(us(Date32(Some(-1))), Some(Point::Instant(-86_400_000_000)));
    assert_eq!(us(UInt8(Some(7))), Some(Point::Integer(7)));
    assert_eq!(us(Int64(None)), None);
    assert!(point_of_scalar(&TimestampSecond(Some(i64::MAX), None)).is_err());
    assert!(point_of_scalar(&UInt64(Some(u64::MAX))).is_err());
    assert!(point_of_scalar(&Float64(Some(1.0))).is_err());
}

#[test]
fn d2_bounds_in_the_wrong_order_are_errors_and_equal_ones_are_empty() {
    let on = |spec: PointSpec| spec.on_axis(Axis::Valid, AxisType::Integer, "t", 0);
    let (a, b) = (Point::Integer(1), Point::Integer(2));
    assert_eq!(on(PointSpec::FromTo(a, b)).unwrap(), RangeSpec::FromTo(1, 2));
    let empty = on(PointSpec::FromTo(a, a)).unwrap();
    assert!(!empty.wants(0, 5) && !empty.wants(1, 2));
    for spec in [PointSpec::FromTo(b, a), PointSpec::Between(b, a), PointSpec::ContainedIn(b, a)] {
        assert!(on(spec).unwrap_err().message.contains("2 lies after 1"));
    }
}
