// Appended to the exported text: read objects of the bucket b, all at the same time. Argument: how many.
const names = [...Array(Number(process.argv[2])).keys()].map((each) => `o${String(each).padStart(4, '0')}`);
Promise.all(names.map((name) => storage.bucket('b').file(name).getMetadata())).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
