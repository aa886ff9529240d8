import { spawn } from 'node:child_process'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { stampSuite } from '../check/stamp.ts'
import { STEPS, type Step } from './steps.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

const FLAGS = {
  only: { type: 'list', help: 'the names of the steps to run' },
  count: { type: 'int', default: 1_000_000, min: 1, help: 'malformed requests to send' },
  seed: { type: 'int', default: -1, help: 'draws the same malformed requests again; others each time when absent' },
} as const satisfies FlagTable

/** Runs one step with the terminal's output. Returns whether it passed. */
function passes({ runner, env }: Step, args: readonly (string | number)[]): Promise<boolean> {
  const child = spawn(process.execPath, [path.join(ROOT, runner), ...args.map(String)], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('close', (code) => resolve(code === 0))
  })
}

/** `npm run long`: one step after the other; a step that fails keeps no other from running. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'npm run long --')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const { only } = flags.values
  const results: string[] = []
  let failed = 0
  for (const step of STEPS) {
    const { name, args: given, suite } = step
    if (only.length > 0 && !only.includes(name)) continue
    console.log(`\n== ${name}`)
    const passed = await passes(step, given(flags.values))
    if (passed && suite !== undefined) stampSuite(ROOT, suite)
    if (!passed) failed++
    results.push(`${name}: ${passed ? 'passed' : 'FAILED'}`)
  }
  console.log(`\n${results.join('\n')}`)
  return failed === 0 && results.length > 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
