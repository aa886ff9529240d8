import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '../..')
const ROUNDS = 50

/** Identical held calls at three gateways on one Postgres, for many rounds. */
const child = spawn(
  process.execPath,
  [path.join(ROOT, 'tools/test/run.ts'), 'services/gateway/decide/approvals/replicas.live.test.ts'],
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, PLAT_TEST_APPROVAL_ROUNDS: String(ROUNDS) },
  },
)
const [code] = await once(child, 'close')
process.exitCode = code ?? 1
