import { execFileSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import path from 'node:path'
import { stampSuite } from '../../tools/check/stamp.ts'
import { executeTests } from '../../tools/test/execute.ts'
import { CHROMIUM } from './chromium.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Timeout of a test file, in milliseconds: above that of each of its stories, which says more about what did not go on. */
const FILE_TIMEOUT_MS = 1_800_000

/** Installs Debian's chromium where that is possible. Returns why it is missing, or null. */
function missingBrowser(): string | null {
  if (existsSync(CHROMIUM)) return null
  try {
    execFileSync('apt-get', ['update', '-q'], { stdio: 'ignore' })
    execFileSync('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core'], {
      stdio: 'ignore',
    })
  } catch {
    return `${CHROMIUM} is missing, and apt-get cannot install it`
  }
  return existsSync(CHROMIUM) ? null : `${CHROMIUM} is missing`
}

/**
 * `npm run test:browser [-draw] [file …]`: the console in a real browser, against a real `plat up`. Without a browser all files are skipped, and counted as
 * such. `-draw` writes the pictures of docs/console.md.
 */
async function main(args: readonly string[]): Promise<number> {
  const named = args.filter((arg) => arg !== '-draw')
  if (named.length < args.length) process.env.PLAT_DRAW_CONSOLE = '1'
  const files = named.length > 0 ? named : globSync('*.browser.test.ts', { cwd: import.meta.dirname }).sort()
  const missing = missingBrowser()
  if (missing !== null) {
    console.log(`browser: ${missing}`)
    console.log(`0 passed, 0 failed, ${files.length} skipped`)
    return 0
  }
  const executed = await executeTests({
    files: files.map((file) => path.resolve(import.meta.dirname, path.basename(file))),
    concurrency: 1,
    timeoutMs: FILE_TIMEOUT_MS,
  })
  executed.printCounts()
  if (executed.failed > 0) return 1
  if (named.length === 0) stampSuite(ROOT, 'browser')
  return 0
}

process.exitCode = await main(process.argv.slice(2))
