import { globSync } from 'node:fs'
import path from 'node:path'
import { stampSuite } from '../../tools/check/stamp.ts'
import { executeTests } from '../../tools/test/execute.ts'
import { buildBinaries } from './binaries.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Timeout of a test file, which starts a separate API server, in milliseconds. */
const FILE_TIMEOUT_MS = 600_000

/** `npm run test:cluster`: what only a real API server can show. Without Go or its modules it cannot run, which fails it and is one line. */
async function main(): Promise<number> {
  const binaries = buildBinaries((line) => console.log(`cluster: ${line}`))
  if (typeof binaries === 'string') {
    console.log(`cluster: cannot run: ${binaries}`)
    return 1
  }
  const files = globSync('*.cluster.test.ts', { cwd: import.meta.dirname }).sort()
  const executed = await executeTests({
    files: files.map((file) => path.join(import.meta.dirname, file)),
    concurrency: 1,
    timeoutMs: FILE_TIMEOUT_MS,
  })
  executed.results.write(ROOT, 'cluster')
  executed.printCounts()
  if (executed.failed > 0) return 1
  stampSuite(ROOT, 'cluster')
  return 0
}

process.exitCode = await main()
