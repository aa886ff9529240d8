import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { KeyServiceError } from '@plat/keys'
import type { Log } from '@plat/process'
import { until } from '@plat/testkit/until'
import { keyConformance } from './testing/conformance.ts'
import { servicesOf } from './testing/services.ts'
import { createSoftHsm, PIN, type SoftHsm } from './testing/softhsm.ts'

/** A token with keys of every type that the adapter has. */
async function withKeys(): Promise<SoftHsm & { uri(name: string, more?: string): string }> {
  const hsm = await createSoftHsm()
  const pair = (type: string, label: string, id: string) =>
    hsm.tool('--keypairgen', '--key-type', type, '--label', label, '--id', id)
  pair('EC:prime256v1', 'p256', '01')
  pair('rsa:2048', 'rsa', '02')
  pair('EC:edwards25519', 'ed', '03')
  pair('EC:prime256v1', 'with space; and é', '04')
  for (const [label, id] of [
    ['wrap', '05'],
    ['wrap2', '06'],
  ] as const)
    hsm.tool('--keygen', '--key-type', 'AES:32', '--label', label, '--id', id, '--sensitive')
  const query = `?module-path=${hsm.modulePath}&pin-source=file:${hsm.pinFile}`
  return { ...hsm, uri: (name, more = query) => `pkcs11:token=plat;${name}${more}` }
}

keyConformance('SoftHSM', async (t) => {
  const { env, uri } = await withKeys()
  return {
    keys: servicesOf(t, env),
    signing: { ES256: uri('object=p256'), EdDSA: uri('object=ed'), RS256: uri('id=%02') },
    another: uri('object=with%20space%3b%20and%20%c3%a9'),
    encrypting: [uri('object=wrap'), uri('object=wrap2')],
    missing: uri('object=none'),
  }
})

test('SoftHSM: the PIN is in no argument of a process and in no log, and a wrong one is tried once', async (t) => {
  // Shows D3.audit.keyURI.pkcs11.
  const { env, uri, pinFile, modulePath } = await withKeys()
  const logged: string[] = []
  const note = (...parts: unknown[]) => void logged.push(JSON.stringify(parts))
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log }
  const keys = servicesOf(t, env, { log })
  const signer = await keys.openSigner(uri('object=p256'))
  let isDone = false
  const signing = Promise.all(Array.from({ length: 20 }, () => signer.sign(Buffer.from('x')))).finally(() => {
    isDone = true
  })
  let seen = 0
  await until(() => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const command = readCommand(pid)
      if (!command.startsWith('pkcs11-tool')) continue
      seen++
      assert.ok(!command.includes(PIN), command)
    }
    return isDone
  }, 'the signatures')
  await signing
  assert.ok(seen > 0, 'processes of the tool were seen')
  writeFileSync(pinFile, 'wrong-pin')
  for (const expected of [/CKR_PIN_INCORRECT$/, /refused this PIN before/]) {
    await assert.rejects(keys.openSigner(uri('object=rsa')), (error) => {
      assert.ok(error instanceof KeyServiceError && error.kind === 'refused', String(error))
      assert.match(error.message, expected)
      return true
    })
  }
  writeFileSync(pinFile, PIN)
  assert.ok(await keys.openSigner(uri('object=rsa')), 'a changed PIN is tried again')
  await assert.rejects(keys.openSigner(`pkcs11:object=p256?module-path=${modulePath}`), /no PIN/)
  assert.ok(!logged.join().includes(PIN))
})

function readCommand(pid: string): string {
  try {
    return readFileSync(join('/proc', pid, 'cmdline'), 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

test('SoftHSM: two keys of one name are refused, and so are a deleted key, a long message and a wrong module', async (t) => {
  const { env, uri, tool, modulePath, pinFile } = await withKeys()
  const keys = servicesOf(t, env)
  const signer = await keys.openSigner(uri('object=ed'))
  assert.ok(await signer.sign(Buffer.alloc(1024)))
  await assert.rejects(async () => await signer.sign(Buffer.alloc(1025)), /at most 1024 bytes with Ed25519/)
  tool('--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'ed', '--id', '09')
  await assert.rejects(servicesOf(t, env).openSigner(uri('object=ed')), /several keys fit: add id=/)
  assert.ok(await signer.sign(Buffer.from('x')), 'an open key is used by its id')
  tool('--delete-object', '--type', 'privkey', '--id', '03')
  await assert.rejects(async () => await signer.sign(Buffer.from('x')), /the token has no such key/)
  const wrong = `pkcs11:token=plat;object=p256?module-path=/nowhere.so&pin-source=file:${pinFile}`
  await assert.rejects(keys.openSigner(wrong), (error) => error instanceof KeyServiceError)
  const other = `pkcs11:token=other;object=p256?module-path=${modulePath}&pin-source=file:${pinFile}`
  await assert.rejects(keys.openSigner(other), /no token of this name is there$/)
})
