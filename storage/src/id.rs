//! Numbers that the store gives to the things it knows. They are never reused.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);
    };
}

id!(
    /// A table of the store.
    TableId
);
id!(
    /// A column of one table. Stable over renames of position and over schema versions.
    ColumnId
);
id!(
    /// A stream: an ordered place that events come from (a topic partition, a directory, a file, a
    /// pull). The number is given when the store first takes an event from it (rule B3).
    StreamId
);
id!(
    /// A part of a stream inside which positions are plain numbers: the whole of a topic partition,
    /// or one file of a directory. Origins of a stream rank by their file's natural order.
    OriginId
);
id!(
    /// What an event's envelope says of its source: server, database, schema, table.
    SourceId
);
