import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PRELOAD = pathToFileURL(path.join(import.meta.dirname, 'preload.mjs'))

/** `npm test` with a disk in every process that writes a good while later than it is asked to. */
const child = spawn(process.execPath, [path.join(ROOT, 'tools/test/run.ts'), ...process.argv.slice(2)], {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import ${PRELOAD}` },
})
const [code] = await once(child, 'close')
process.exitCode = code ?? 1
