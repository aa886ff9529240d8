import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const plat = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))

/** `npm run demo`: the example agent under `plat run`, then the proof that the ledger holds what it did. */
export async function main(): Promise<number> {
  const agent = runPlat('run', '-dir', here, 'assistant', '--', process.execPath, `${here}agent.ts`)
  if (agent !== 0) return agent
  console.log('\nWhat the ledger says:\n')
  runPlat('audit', 'tail', '-dir', here, '-n', '8')
  console.log('')
  return runPlat('audit', 'verify', '-dir', here)
}

function runPlat(...args: string[]): number {
  return spawnSync(process.execPath, [plat, ...args], { stdio: 'inherit' }).status ?? 1
}
