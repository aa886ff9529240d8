import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '../..')
/** Agents of the larger of two clusters. */
const AGENTS = 32_000

/** The operator on a cluster of very many Agents: a change costs what its output needs. */
const child = spawn(process.execPath, [path.join(ROOT, 'tools/test/run.ts'), 'services/operator/scale.live.test.ts'], {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, PLAT_TEST_SCALE_AGENTS: String(AGENTS) },
})
const [code] = await once(child, 'close')
process.exitCode = code ?? 1
