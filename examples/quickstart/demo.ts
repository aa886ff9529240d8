import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type FlagTable, parseFlags } from '@plat/config'

const here = fileURLToPath(new URL('.', import.meta.url))
const plat = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))

const flags = {
  dir: { type: 'string', default: here, help: 'the folder that npm start governs' },
} as const satisfies FlagTable

/** `npm run demo`: the example agent under `plat run`, then the proof that the ledger holds what it did. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, argv, 'npm run demo --')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  const { dir } = parsed.values
  const agent = runPlat('run', 'assistant', '-dir', dir, '--', process.execPath, `${here}agent.ts`)
  if (agent !== 0) return agent
  console.log('\nWhat the ledger says:\n')
  runPlat('audit', 'tail', '-dir', dir, '-n', '8')
  console.log('')
  return runPlat('audit', 'verify', '-dir', dir)
}

function runPlat(...args: string[]): number {
  return spawnSync(process.execPath, [plat, ...args], { stdio: 'inherit' }).status ?? 1
}
