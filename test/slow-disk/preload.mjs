/**
 * Loaded into every process of a run (`--import`): delays every asynchronous write, in order, so that tests that do not wait for a write
 * fail.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/** Milliseconds; long enough for any answer to overtake a write. */
const LATE_MS = 120

function late(object, name) {
  const real = object[name]
  object[name] = function (...args) {
    setTimeout(() => real.apply(this, args), LATE_MS)
  }
}

function promisedLate(object, name) {
  const real = object[name]
  object[name] = async function (...args) {
    await new Promise((resolve) => setTimeout(resolve, LATE_MS))
    return real.apply(this, args)
  }
}

for (const name of ['write', 'fsync', 'fdatasync']) late(fs, name)
const handle = await fs.promises.open(import.meta.filename, 'r')
for (const name of ['write', 'appendFile', 'sync', 'datasync']) promisedLate(Object.getPrototypeOf(handle), name)
await handle.close()
syncBuiltinESMExports()
