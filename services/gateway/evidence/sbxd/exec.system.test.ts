import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { bubblewrapProblem, runInBubblewrap } from '@plat/testkit/bubblewrap'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { startSandboxDaemon } from '@plat/testkit/sandbox-daemon'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

test('code runs under bubblewrap in the reference daemon, with its decision mirrored and both ledgers anchored', async (t) => {
  const problem = bubblewrapProblem()
  if (problem !== null) return t.skip(problem)
  const dir = tempFolder()
  const [ledgerPath, auditPath, keyFile, tokenFile] = ['sbxd.jsonl', 'audit.jsonl', 'exec.key', 'token'].map((name) =>
    join(dir, name),
  )
  if (ledgerPath === undefined || auditPath === undefined || keyFile === undefined) return assert.fail('no path')
  await Promise.all([writeFile(keyFile, 'exec-key'), writeFile(String(tokenFile), 'secret')])
  const daemon = await startSandboxDaemon({ ledgerPath, token: 'secret', execKey: 'exec-key', run: runInBubblewrap })
  t.after(() => daemon.close())
  const endpointTemplate = `${daemon.url}/sandboxes/{namespace}/{session}`
  const { gateway, issuer } = await started(t, {
    auditPath,
    exec: { enabled: true, endpointTemplate, keyFile },
    sbxd: { url: daemon.url, tokenFile, mirrorDecisions: true, anchorIntervalSeconds: 1 },
  })
  const authorization = `Bearer ${issuer.token({ scope: 'tools:plat-exec' })}`
  const run = async (code: string, timeoutSeconds = 10) => {
    const response = await fetch(`${gateway.url}/v1/sessions/s1/exec`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ code, timeoutSeconds }),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  assert.deepEqual(await run('echo $((6 * 7))'), { status: 200, body: { stdout: '42\n', stderr: '', exitCode: 0 } })
  // Neither the machine's files nor its network nor its processes are there.
  const { body } = await run(
    `cat ${keyFile}; ls /home /etc; cat /proc/net/dev | grep -c eth; ls /proc | grep -c '^[0-9]'`,
  )
  assert.match(body.stderr, /No such file/)
  assert.equal(body.stdout.split('\n')[0], '0')
  await until(() => daemon.decisions.length >= 2, 'the decisions are mirrored')
  assert.deepEqual([daemon.decisions[0]?.server, daemon.decisions[0]?.action], ['plat-exec', 'allow'])
  await until(() => wholeLines(auditPath).some((line) => line.includes('"source":"sbxd"')), 'the ledger is anchored')
  assert.ok(wholeLines(ledgerPath).some((line) => line.includes('"event":"exec"')))
})
