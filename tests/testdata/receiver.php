<?php
// A receiver that does as the test tells it. It opens a connection to the test's
// ledger, says which request it has, and waits for the word how to end; whoever
// kills it ends the connection. It never ends by itself: php-fpm would take that
// for a success.

ignore_user_abort(true);
file_get_contents('php://input');
$die = fn() => posix_kill(getmypid(), 9);
$ledger = stream_socket_client('tcp://' . file_get_contents(__DIR__ . '/ledger')) or $die();
stream_set_timeout($ledger, 60);
fwrite($ledger, json_encode([
    'try' => $_SERVER['HTTP_X_TEST_TRY'] ?? '',
    'event' => $_SERVER['HTTP_X_TEST_EVENT'] ?? '',
    'word' => $_SERVER['HTTP_WEBHOOK_DEDUPE'] ?? '',
]) . "\n");

[$verb, $status, $length] = explode(' ', trim(fgets($ledger) ?: 'die')) + [1 => '200', '0'];
switch ($verb) {
    case 'answer':
        http_response_code((int) $status);
        if ((int) $status >= 300 && (int) $status < 400) {
            header('Location: /elsewhere');
        }
        echo "the upstream's answer";
        break;
    case 'fatal': // display_errors is off: this is a 500
        ini_set('display_errors', '0');
        throw new RuntimeException('the warehouse does not answer');
    case 'cut': // it promises more than it says
        header('Content-Length: 100');
        echo 'only this';
        flush();
        $die();
    case 'long':
        http_response_code((int) $status);
        if ((int) $status >= 300 && (int) $status < 400) {
            header('Location: /elsewhere');
        }
        echo str_repeat(' ', (int) $length);
        break;
    case 'stall': // with a part of the answer, however long
        http_response_code((int) $status);
        header('Content-Length: ' . 2 * (int) $length + 100);
        echo str_repeat(' ', (int) $length), 'only this';
        flush();
        fgets($ledger);
        $die();
    default:
        $die();
}
