// Read instances of Memorystore, all at the same time. Arguments: a port, how many, and the exported config or nothing.
const {CloudRedisClient} = require('@google-cloud/redis');
const {grpc} = require('google-gax');

const [port, calls, config] = process.argv.slice(2);
const client = new CloudRedisClient({
  apiEndpoint: '127.0.0.1',
  port: Number(port),
  projectId: 'p',
  sslCreds: grpc.credentials.createInsecure(),
  ...(config ? {clientConfig: require(config)} : {}),
});
const names = [...Array(Number(calls)).keys()].map((each) => `o${String(each).padStart(4, '0')}`);
const outcome = (promise) => promise.then(() => 'done', (error) => error.code);
Promise.all(names.map((name) => outcome(client.getInstance({name})))).then((outcomes) => {
  console.log(JSON.stringify([...new Set(outcomes)]));
  process.exit(0);
});
