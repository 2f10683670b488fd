// The operations of the npm package @google-cloud/storage, each by its name; prints what each returned as JSON.
const crypto = require('crypto');
const {Storage} = require('@google-cloud/storage');
const storage = new Storage({projectId: 'p', apiEndpoint: process.env.CLOUD, useAuthWithCustomEndpoint: false});
const big = crypto.createHash('sha256').update('x').digest();
const data = Buffer.alloc(700000, big);
const bucket = storage.bucket('nodejs');
const file = (name, options) => bucket.file(name, options);
const text = async (name, options) => (await file(name, options).download())[0].toString();
const code = (promise) => promise.then(() => 'done', (error) => error.code ?? error.response?.status);
const written = (stream, bytes) => new Promise((resolve, reject) => {
  stream.on('error', reject).on('finish', resolve);
  for (let at = 0; at < bytes.length; at += 100000) stream.write(bytes.subarray(at, at + 100000));
  stream.end();
});

const operations = {
  'create a bucket': async () => (await storage.createBucket('nodejs', {location: 'EU', versioning: {enabled: false}}))[0].name,
  'save': async () => { await file('saved').save('hello'); return text('saved'); },
  'save a large one': async () => { await file('large').save(data); return (await file('large').download())[0].equals(data); },
  'save at once': async () => { await file('once').save('hello', {resumable: false, contentType: 'text/plain'}); return text('once'); },
  'save a stream': async () => { await written(file('stream').createWriteStream(), data); return (await file('stream').download())[0].equals(data); },
  'save in chunks': async () => {
    await written(file('chunks').createWriteStream({chunkSize: 262144}), data);
    return (await file('chunks').download())[0].equals(data);
  },
  'save empty': async () => { await file('empty').save(''); return text('empty'); },
  'save under a condition': async () => [
    await code(file('once').save('no', {preconditionOpts: {ifGenerationMatch: 0}})),
    await code(file('new').save('yes', {preconditionOpts: {ifGenerationMatch: 0}})),
  ],
  'download a range': async () => (await file('saved').download({start: 1, end: 3}))[0].toString(),
  'metadata': async () => {
    await file('saved').setMetadata({metadata: {k: 'v'}, cacheControl: 'no-store'});
    const [found] = await file('saved').getMetadata();
    return [found.metadata.k, found.cacheControl, found.metageneration];
  },
  'exists': async () => [(await file('saved').exists())[0], (await file('nope').exists())[0]],
  'copy': async () => { await file('saved').copy(file('copy')); return text('copy'); },
  'rename': async () => { await file('copy').move('dir/moved'); return [(await file('copy').exists())[0], await text('dir/moved')]; },
  'move': async () => { await file('dir/moved').moveFileAtomic('dir/atomic'); return text('dir/atomic'); },
  'combine': async () => { await bucket.combine([file('saved'), file('once')], file('combined')); return text('combined'); },
  'list': async () => {
    const [files, , more] = await bucket.getFiles({delimiter: '/', autoPaginate: false, prefix: ''});
    return [files.map((each) => each.name), more.prefixes];
  },
  'list in pages': async () => (await bucket.getFiles({maxResults: 2})).length > 0 && (await bucket.getFiles())[0].length,
  'a key': async () => {
    const key = crypto.createHash('sha256').update('key').digest();
    const mine = file('secret').setEncryptionKey(key);
    await mine.save('secret', {resumable: false});
    return [(await mine.download())[0].toString(), await code(file('secret').download())];
  },
  'a key in a session': async () => {
    const key = crypto.createHash('sha256').update('key').digest();
    const mine = file('secret2').setEncryptionKey(key);
    await mine.save(data);
    return [(await mine.download())[0].equals(data), await code(file('secret2').download())];
  },
  'a hold': async () => {
    await file('new').setMetadata({temporaryHold: true});
    const held = await code(file('new').delete());
    await file('new').setMetadata({temporaryHold: false});
    return [held, await code(file('new').delete())];
  },
  'access': async () => {
    const [policy] = await bucket.iam.getPolicy();
    policy.bindings.push({role: 'roles/storage.objectViewer', members: ['allUsers']});
    await bucket.iam.setPolicy(policy);
    await file('saved').acl.add({entity: 'allUsers', role: storage.acl.READER_ROLE});
    return (await bucket.iam.getPolicy())[0].bindings.length;
  },
  'keys': async () => {
    const [key, secret] = await storage.createHmacKey('a@p.iam.gserviceaccount.com');
    await key.setMetadata({state: 'INACTIVE'});
    await key.delete();
    return secret.length > 0;
  },
  'labels': async () => { await bucket.setLabels({a: 'b'}); return (await bucket.getLabels())[0].a; },
  'soft delete': async () => {
    await bucket.setMetadata({softDeletePolicy: {retentionDurationSeconds: '604800'}});
    const generation = (await file('once').getMetadata())[0].generation;
    await file('once').delete();
    await file('once').restore({generation});
    await bucket.setMetadata({softDeletePolicy: {retentionDurationSeconds: '0'}});
    return text('once');
  },
  'delete under a condition': async () => [
    await code(file('saved').delete({ifGenerationMatch: 1})),
    await code(file('saved').delete({ifGenerationMatch: (await file('saved').getMetadata())[0].generation})),
  ],
  'delete all': async () => { await bucket.deleteFiles(); await bucket.delete(); return (await bucket.exists())[0]; },
};

(async () => {
  const results = {};
  for (const [name, operation] of Object.entries(operations)) {
    results[name] = await operation().catch((error) => `failed: ${error.code} ${error.message}`.slice(0, 300));
  }
  console.log(JSON.stringify(results));
})();
