import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { bubblewrapProblem, runInBubblewrap } from '@plat/testkit/bubblewrap'
import { startSandboxDaemon } from '@plat/testkit/sandbox-daemon'

/** Returns the secret in a file, which is created for its owner only if it does not exist. */
function secretIn(path: string): string {
  if (!existsSync(path)) writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(path, 0o600)
  return readFileSync(path, 'utf8').trim()
}

/** The blocks of gateway.json for this daemon (docs/sandbox-daemons.md). */
function blocksOf(url: string, [tokenFile, keyFile]: readonly [string, string]): object {
  return {
    sbxd: { url, tokenFile, mirrorDecisions: true, anchorIntervalSeconds: 60 },
    exec: { enabled: true, endpointTemplate: `${url}/sandboxes/{namespace}/{session}`, keyFile },
  }
}

/**
 * `node sandbox.ts --dir <folder> [--port 7070]`: the reference sandbox daemon for a laptop. It runs shell scripts under bubblewrap, for the gateway only, until it
 * gets SIGINT or SIGTERM. Its secrets and its ledger are in the folder, and are used again by the next run.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { dir: { type: 'string', default: '.plat/sandbox' }, port: { type: 'string', default: '7070' } },
  })
  const problem = bubblewrapProblem()
  if (problem !== null) {
    console.error(`code cannot be isolated: ${problem}`)
    return 1
  }
  const dir = resolve(values.dir)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const files = [join(dir, 'token'), join(dir, 'exec.key')] as const
  const [token, execKey] = [secretIn(files[0]), secretIn(files[1])]
  const ledgerPath = join(dir, 'ledger.jsonl')
  const daemon = await startSandboxDaemon({
    ledgerPath,
    token,
    execKey,
    run: runInBubblewrap,
    port: Number(values.port),
  })
  console.log(JSON.stringify(blocksOf(daemon.url, files), null, 2))
  const { promise, resolve: end } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end())
  await promise
  await daemon.close()
  return 0
}

process.exitCode = await main()
