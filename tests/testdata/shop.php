<?php
// An old shop. It believes whatever it is told, every time it is told: two
// "paid" events ship an order twice. Files beside it make it slow or broken.

$dir = __DIR__;
$db = new PDO("sqlite:$dir/shop.sqlite", null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$db->exec('PRAGMA busy_timeout = 20000');
$db->exec('CREATE TABLE IF NOT EXISTS orders (invoice TEXT PRIMARY KEY, status TEXT)');
$db->exec('CREATE TABLE IF NOT EXISTS shipments (invoice TEXT)');

if (PHP_SAPI === 'cli') { // the test asks: php index.php <invoice>
    $count = $db->prepare('SELECT COUNT(*) FROM shipments WHERE invoice = ?');
    $count->execute([$argv[1]]);
    $status = $db->prepare('SELECT status FROM orders WHERE invoice = ?');
    $status->execute([$argv[1]]);
    echo $status->fetchColumn() ?: 'unknown', ' ', $count->fetchColumn();
    exit;
}

$body = file_get_contents('php://input');
$event = $_SERVER['HTTP_X_TEST_EVENT'] ?? 'none';
$seen = [
    'event' => $event,
    'word' => $_SERVER['HTTP_WEBHOOK_DEDUPE'] ?? '',
    'length' => $_SERVER['CONTENT_LENGTH'] ?? $_SERVER['HTTP_CONTENT_LENGTH'] ?? '',
    'type' => $_SERVER['CONTENT_TYPE'] ?? $_SERVER['HTTP_CONTENT_TYPE'] ?? '',
    'sha256' => hash('sha256', $body),
    'custom' => $_SERVER['HTTP_X_CUSTOM'] ?? '',
];
file_put_contents("$dir/requests.jsonl", json_encode($seen) . "\n", FILE_APPEND | LOCK_EX);

ignore_user_abort(true);
while (file_exists("$dir/hold-$event")) {
    usleep(5000);
    clearstatcache();
}
if (file_exists("$dir/die-$event")) {
    unlink("$dir/die-$event");
    exec('kill -9 ' . getmypid());
}
if (file_exists("$dir/cut-$event")) { // it promises an answer and dies over it
    unlink("$dir/cut-$event");
    header('Content-Length: 1000');
    echo 'boo';
    flush();
    exec('kill -9 ' . getmypid());
}
if (file_exists("$dir/broken")) {
    http_response_code(500);
    echo 'Fatal error: the warehouse does not answer';
    exit;
}

$message = json_decode($body, true);
$type = $message['event_type'] ?? '';
$invoice = $message['data']['invoice_id'] ?? '';
if ($type === 'invoice.confirming' || $type === 'invoice.paid') {
    $db->prepare('INSERT OR REPLACE INTO orders VALUES (?, ?)')->execute([$invoice, substr($type, strlen('invoice.'))]);
}
if ($type === 'invoice.paid') {
    $db->prepare('INSERT INTO shipments VALUES (?)')->execute([$invoice]);
}
header('X-Shop: open');
echo 'booked';
