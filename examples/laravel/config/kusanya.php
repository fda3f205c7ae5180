<?php

return [
    'base_url' => env('KUSANYA_BASE_URL'),
    'api_key' => env('KUSANYA_API_KEY'),
    'webhook_secret' => env('KUSANYA_WEBHOOK_SECRET'),
    'poll_seconds' => (int) env('POLL_SECONDS', 30),
];
