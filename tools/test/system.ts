import { globSync } from 'node:fs'
import path from 'node:path'
import { executeTests } from './execute.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const FILES = [
  'packages/**/*.system.test.ts',
  'services/**/*.system.test.ts',
  'apps/**/*.system.test.ts',
  'examples/**/*.system.test.ts',
  'test/conformance/**/*.system.test.ts',
  'sdk/**/*.system.test.ts',
]
/** Some fetch and unpack what they talk to, in milliseconds; in `npm run long` some wait longer. */
const FILE_TIMEOUT_MS = Number(process.env.PLAT_TEST_FILE_SECONDS ?? 600) * 1000

/** `npm run test:system`: tests against programs and vectors of others; with arguments only these files. */
const named = process.argv.slice(2)
const files =
  named.length > 0 ? named : globSync(FILES, { cwd: ROOT, exclude: (name) => path.basename(name) === 'node_modules' })
const executed = await executeTests({
  files: files.sort().map((file) => path.join(ROOT, file)),
  concurrency: 2,
  timeoutMs: FILE_TIMEOUT_MS,
})
if (named.length === 0) executed.results.write(ROOT, 'system')
executed.printCounts()
process.exitCode = executed.failed > 0 ? 1 : 0
