import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { stampSuite } from '../../tools/check/stamp.ts'
import { buildBinaries } from './binaries.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** `npm run test:cluster`: what only a real API server can show. Without Go or its modules it is skipped, in one line. */
function main(): number {
  const binaries = buildBinaries((line) => console.log(`cluster: ${line}`))
  if (typeof binaries === 'string') {
    console.log(`cluster: skipped: ${binaries}`)
    return 0
  }
  const { status } = spawnSync(process.execPath, ['--test', path.join(import.meta.dirname, '*.cluster.test.ts')], {
    stdio: 'inherit',
  })
  if (status !== 0) return 1
  stampSuite(ROOT, 'cluster')
  return 0
}

process.exitCode = main()
