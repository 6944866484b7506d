CREATE FLOW orders_cdc AS AUTO CDC INTO orders
FROM STREAM files('cdc/**', format => 'json', op => 'op')
KEYS (id)
SEQUENCE BY at
SYSTEM SEQUENCE BY known
TRACK HISTORY ON * EXCEPT (note)
COLUMNS * EXCEPT (op, at, known);
