import { globSync } from 'node:fs'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { stampSuite } from '../../tools/check/stamp.ts'
import { executeTests } from '../../tools/test/execute.ts'
import { buildBinaries } from './binaries.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Timeout of a test file, which starts a separate API server, in milliseconds. */
const FILE_TIMEOUT_MS = 600_000

const FLAGS = {
  build: { type: 'bool', default: false, help: 'only build the programs, so that a later run starts at once' },
} as const satisfies FlagTable

/** `npm run test:cluster`: what only a real API server can show. Without Go or its modules it cannot run, which fails it and is one line. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'npm run test:cluster --')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const binaries = buildBinaries((line) => console.log(`cluster: ${line}`))
  if (typeof binaries === 'string') {
    console.log(`cluster: cannot run: ${binaries}`)
    return 1
  }
  if (flags.values.build) return 0
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

process.exitCode = await main(process.argv.slice(2))
