<?php
// A stand-in for google/cloud-storage, which Debian, PyPI and npm do not have. Its loop is that of
// Google\Cloud\Core\ExponentialBackoff: `$delayFunction($calcDelayFunction($retryAttempt))`.
namespace Google\Cloud\Storage;

class StorageClient
{
    const RETRY_IDEMPOTENT = 'idempotent';

    public function __construct(private array $config)
    {
    }

    public function read(string $url): void
    {
        for ($attempt = 0; @file_get_contents($url) === false; $attempt++) {
            if ($attempt >= $this->config['retries']) {
                exit(1);
            }
            usleep(($this->config['restCalcDelayFunction'])($attempt));
        }
    }
}
