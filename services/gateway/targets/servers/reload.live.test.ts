import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { setUpRegistry } from '../../testing/registered.ts'

const auth = { type: 'none' } as const

/** A scripted server that responds to every call with its name. */
async function named(t: TestContext, name: string) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${name}"}]}}`))
  return upstream
}

test('the registry is reloaded under load: servers are moved, added and removed, and no call fails', async (t) => {
  const [first, second] = [await named(t, 'first'), await named(t, 'second')]
  const fixture = await setUpRegistry(t, {
    servers: { notes: { url: first.url, auth }, gone: { url: first.url, auth } },
  })
  const token = fixture.issuer.token()
  let going = true
  const seen: string[] = []
  const callers = Array.from({ length: 4 }, async () => {
    while (going) seen.push((await fixture.call('notes', token)).text)
  })
  await until(() => seen.length > 20, 'calls of the first server')
  assert.equal((await fixture.call('gone')).error, null)
  assert.equal((await fixture.call('fresh')).error, 'unknown_server')
  await fixture.publish({ notes: { url: second.url, auth }, fresh: { url: second.url, auth } })
  await until(() => seen.at(-1)?.includes('second') === true, 'the new registry')
  assert.equal((await fixture.call('fresh')).error, null)
  assert.equal((await fixture.call('gone')).error, 'unknown_server')
  await fixture.publish('{"version":1,"servers":{"default/notes":{"url":"http://nowhere"')
  await until(async () => (await fixture.written()).includes('upstreamsFile is refused'), 'the broken file to be seen')
  assert.match((await fixture.call('notes')).text, /second/)
  going = false
  await Promise.all(callers)
  assert.deepEqual(
    seen.filter((text) => !text.includes('first') && !text.includes('second')),
    [],
  )
})
