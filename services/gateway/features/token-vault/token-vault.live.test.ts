import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PUBLIC, vaultGround } from './testing/ground.ts'

test('a user without an account is told where to connect it, connects it, and the server sees his token and nobody else’s', async (t) => {
  // Shows D2.auth.perUser, D3.endpoint.connect, D3.tokenVault.enabled, D3.tokenVault.publicBaseURL, D3.tokenVault.login.issuer,
  // D3.tokenVault.login.clientID, D3.tokenVault.login.clientSecretFile, D3.tokenVault.providers.name, D3.tokenVault.providers.clientID,
  // D3.tokenVault.providers.clientSecretFile, D3.tokenVault.providers.issuer.
  const ground = await vaultGround(t)
  const before = await ground.callAs('ada')
  assert.deepEqual([before.error, before.connectURL], ['upstream_credential', `${PUBLIC}/v1/connect/hub`])
  assert.match(before.reason, /your hub account is not connected: open https:\/\/gateway.example\/v1\/connect\/hub/)
  const browser = ground.browser()
  const done = await ground.connect(browser, 'ada', 'ada-at-hub')
  assert.match(done.text, /hub is connected[\s\S]*<strong>ada<\/strong>/)
  assert.equal((await ground.callAs('ada')).as, 'ada-at-hub')
  assert.equal((await ground.callAs('bob')).connectURL, `${PUBLIC}/v1/connect/hub`)
})
