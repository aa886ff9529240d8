import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { get } from 'node:https'
import path from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { createAuthority } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { startTestService } from '@plat/testkit/processes/service'
import { attestationFlags } from './flags.ts'

const env = { PLAT_ATTESTATION_TOKEN: 'a', PLAT_BROKER_TOKEN: 'b' }
const BIN = path.join(import.meta.dirname, 'bin/plat-attestation.mjs')

test('the service answers probes, its version and its metrics, and drains', async () => {
  // Shows D3.exposition.attestationPort.
  assert.equal(attestationFlags.listen.default, ':8082')
  const statePath = path.join(tempFolder(), 'releases.jsonl')
  const service = await startTestService('attestation', { env, flags: ['-state-path', statePath] })
  const ask = async (where: string) => {
    const response = await fetch(service.url + where)
    return [response.status, await response.text()] as const
  }
  assert.deepEqual(await ask('/healthz'), [200, '{"status":"ok"}'])
  assert.deepEqual(await ask('/readyz'), [200, '{"status":"ready"}'])
  assert.match((await ask('/version'))[1], /^\{"component":"attestation","version":"/)
  const [, metrics] = await ask('/metrics')
  assert.match(metrics, /^plat_build_info\{component="attestation",/m)
  assert.match(metrics, /^plat_attest_releases_pending 0$/m)
  assert.doesNotMatch(
    metrics,
    /^plat_attest_failure_total\{/m,
    'a labelled counter has no series before its first event',
  )
  assert.equal(await service.stop(), 0)
})

test('over TLS it answers with its certificate', async () => {
  const dir = tempFolder()
  const authority = await createAuthority({ name: 'web', now: systemClock.now() })
  const server = await authority.issue({ name: 'attestation', dnsNames: ['localhost'] })
  const files = { 'tls.crt': server.pem, 'tls.key': String(server.privateKey.export({ type: 'pkcs8', format: 'pem' })) }
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(dir, name), text)
  const flags = ['-tls-cert', path.join(dir, 'tls.crt'), '-tls-key', path.join(dir, 'tls.key')]
  const service = await startTestService('attestation', { env, flags })
  assert.match(service.url, /^https:/)
  const status = await new Promise((resolve, reject) => {
    const options = { ca: authority.pem, servername: 'localhost', agent: false as const }
    get(`${service.url}/healthz`, options, (response) => resolve(response.resume().statusCode)).on('error', reject)
  })
  assert.equal(status, 200)
  assert.equal(await service.stop(), 0)
})

test('invalid flags give one line, and prevent the start', () => {
  const run = (flags: readonly string[], more: object = {}) => {
    const { PLAT_ADMIN_TOKEN: _, ...inherited } = process.env
    const { status, stderr } = spawnSync(process.execPath, [BIN, '-listen', '127.0.0.1:0', ...flags], {
      env: { ...inherited, ...env, ...more },
      encoding: 'utf8',
    })
    return [status, stderr.trimEnd()]
  }
  assert.deepEqual(run([], { PLAT_ATTESTATION_TOKEN: undefined }), [
    1,
    'PLAT_ATTESTATION_TOKEN or PLAT_ATTESTATION_TOKEN_FILE must be set',
  ])
  assert.deepEqual(run([], { PLAT_BROKER_TOKEN: undefined }), [
    1,
    'PLAT_BROKER_TOKEN or PLAT_BROKER_TOKEN_FILE must be set',
  ])
  assert.deepEqual(run(['-tls-cert', 'x']), [1, '-tls-cert: needs -tls-key'])
  assert.deepEqual(run(['-broker-url', 'nowhere', '-revoke-url', 'ftp://x']), [
    1,
    [
      '-broker-url nowhere: must be an http or https URL without query, fragment and user',
      '-revoke-url ftp://x: must be an http or https URL without query, fragment and user',
    ].join('\n'),
  ])
  assert.deepEqual(run(['-revoke-url', 'http://x']), [
    1,
    '-revoke-url: needs PLAT_ADMIN_TOKEN or PLAT_ADMIN_TOKEN_FILE',
  ])
  const damaged = path.join(tempFolder(), 'releases.jsonl')
  writeFileSync(damaged, 'not a journal\n')
  const [status, output] = run(['-state-path', damaged])
  assert.equal(status, 1)
  assert.match(String(output), /^-state-path: journal .*releases\.jsonl is damaged at byte 0/)
  assert.equal(run(['-unheard'])[0], 2)
})
