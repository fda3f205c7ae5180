<?php

function is_genuine(string $rawBody, ?string $header, string $secret, ?float $now = null): bool
{
    $times = $codes = [];
    foreach (explode(',', $header ?? '') as $part) {
        [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
        if ($name === 't' && $value !== '') $times[] = $value;
        if ($name === 'v1' && $value !== '') $codes[] = $value;
    }
    if ($secret === '' || count($times) !== 1 || !preg_match('/^[0-9]{1,15}$/D', $times[0]) || !$codes) return false;
    if (abs(($now ?? time()) - (int) $times[0]) > 300) return false;
    $expected = hash_hmac('sha256', $times[0] . '.' . $rawBody, $secret);
    return count(array_filter($codes, fn ($code) => hash_equals($expected, $code))) > 0;
}
