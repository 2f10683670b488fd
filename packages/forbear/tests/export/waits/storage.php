// Appended to the exported text: read objects of the bucket b, all at the same time. Arguments: a URL, how many.
for ($each = 0; $each < (int) $argv[2]; $each++) {
    if (pcntl_fork() === 0) {
        $storage->read(sprintf('%s/storage/v1/b/b/o/o%04d', $argv[1], $each));
        exit(0);
    }
}
$failed = 0;
while (pcntl_wait($status) > 0) {
    $failed |= $status;
}
exit($failed === 0 ? 0 : 1);
