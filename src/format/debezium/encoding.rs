//! What the names say that Debezium and Kafka Connect give to types.

/// How the value of a column is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Nothing is known: as JSON shows it.
    Untyped,
    /// A double or float; NaN and infinities are text.
    Float,
    /// Bytes in base64.
    Bytes,
    /// Connect's Decimal: base64 of the unscaled integer, or a JSON number.
    Decimal {
        /// Digits after the point, may be negative.
        scale: i64,
    },
    /// A struct of scale and unscaled integer.
    VariableScaleDecimal,
    /// Days.
    Date,
    /// Time of day in these units per second.
    Time(u32),
    /// Wall-clock time in these units per second.
    Timestamp(u32),
    /// An instant in these units per second.
    Instant(u32),
    /// An instant as text.
    ZonedTimestamp,
    /// A JSON document as text.
    Json,
    /// A UUID as text.
    Uuid,
}

impl Encoding {
    /// The encoding that a semantic type has; `None` where the type of the value says it all.
    pub fn of_name(name: &str, scale: impl FnOnce() -> i64) -> Option<Encoding> {
        Some(match name {
            "org.apache.kafka.connect.data.Decimal" => Encoding::Decimal { scale: scale() },
            "io.debezium.data.VariableScaleDecimal" => Encoding::VariableScaleDecimal,
            "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" => Encoding::Date,
            "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => Encoding::Time(1_000),
            "io.debezium.time.MicroTime" => Encoding::Time(1_000_000),
            "io.debezium.time.NanoTime" => Encoding::Time(1_000_000_000),
            "io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp" => {
                Encoding::Timestamp(1_000)
            }
            "io.debezium.time.MicroTimestamp" => Encoding::Timestamp(1_000_000),
            "io.debezium.time.NanoTimestamp" => Encoding::Timestamp(1_000_000_000),
            "io.debezium.time.ZonedTimestamp" | "io.debezium.time.IsoTimestamp" => Encoding::ZonedTimestamp,
            "io.debezium.data.Json" => Encoding::Json,
            "io.debezium.data.Uuid" => Encoding::Uuid,
            _ => return None,
        })
    }
}
