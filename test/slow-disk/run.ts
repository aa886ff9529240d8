import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PRELOAD = pathToFileURL(path.join(import.meta.dirname, 'preload.mjs'))

/** Property tests draw new cases here: a whole run of `npm test` draws the same ones every time. */
const seed = String(randomInt(2 ** 31))
console.log(`PLAT_TEST_SEED=${seed}`)

/** `npm test` in which every process writes to its disk 120 ms late. */
const child = spawn(process.execPath, [path.join(ROOT, 'tools/test/run.ts'), ...process.argv.slice(2)], {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, PLAT_TEST_SEED: seed, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import ${PRELOAD}` },
})
const [code] = await once(child, 'close')
process.exitCode = code ?? 1
