import { renameSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** Collections before a reading: what the first one frees can hold what only the next one finds. */
const COLLECTIONS = 3

/**
 * Loaded into a process before its program (`--import`, with `--expose-gc`): at SIGUSR2 it has the engine give back all that it can, and
 * writes what memory it then still holds to the file that `KEPT_FILE` names, in bytes. What it holds at any other time breathes by
 * hundreds of MiB, because its old generation may grow to several times what is kept before it is collected.
 */
const file = process.env.KEPT_FILE
if (isMainThread && file !== undefined) {
  process.on('SIGUSR2', () => {
    for (let times = 0; times < COLLECTIONS; times++) void globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
    writeFileSync(`${file}.new`, String(process.memoryUsage.rss()))
    renameSync(`${file}.new`, file)
  })
}
