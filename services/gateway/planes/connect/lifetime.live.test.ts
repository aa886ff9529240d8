import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { TOKEN } from '../../testing/started.ts'
import { readAll, setUpTunnels, type TunnelFixture } from '../../testing/tunnels.ts'

/** More bytes than the buffers of both sides can hold. */
const MUCH = 32 * 1024 * 1024

/** Opens a tunnel and sends data through it, so that both sides are open. */
async function opened(fixture: TunnelFixture): Promise<{ readonly socket: Socket; readonly host: Socket }> {
  const { status, socket } = await fixture.ask({ early: 'hello' })
  assert.equal(status, 200)
  socket.once('end', () => socket.end())
  await once(socket.resume(), 'data')
  const host = fixture.accepted.at(-1) ?? assert.fail('no host was reached')
  return { socket, host }
}

/** Resolves when both sides of a tunnel have closed. */
function gone({ socket, host }: { readonly socket: Socket; readonly host: Socket }): Promise<void> {
  return until(() => socket.closed && host.closed, 'the end of both sides')
}

test('a revocation closes both sides of a tunnel and is recorded', async (t) => {
  const fixture = await setUpTunnels(t)
  const tunnel = await opened(fixture)
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ target: { session: 'default/assistant/s1' }, reason: 'test' })
  const revoked = await fetch(`${fixture.gateway.adminUrl}/v1/revocations`, { method: 'POST', headers, body })
  assert.match(await revoked.text(), /"cut":1[,}]/)
  await gone(tunnel)
  const { result, code, bytesUp, bytesDown } = await fixture.outcome()
  assert.deepEqual([result, code, bytesUp, bytesDown], ['cut', 'revoked', 5, 5])
})

test('a tunnel is closed when the policy no longer permits it', async (t) => {
  const fixture = await setUpTunnels(t)
  const tunnel = await opened(fixture)
  await fixture.rules([{ name: 'none', action: 'deny', reason: 'no more' }])
  await gone(tunnel)
  const { result, code } = await fixture.outcome()
  assert.deepEqual([result, code], ['cut', 'policy_denied'])
})

test('a tunnel is closed when the token of its session expires', async (t) => {
  const fixture = await setUpTunnels(t)
  const open = () => {
    const now = Math.floor(Date.now() / 1000)
    // Tokens have 30 seconds of leeway.
    const token = fixture.token({ iat: now - 60, nbf: now - 60, exp: now - 27 })
    return fixture.ask({ authorization: `Bearer ${token}`, early: 'hello' })
  }
  let tunnel = await open()
  // On a busy machine, the token may expire first.
  await until(
    () => tunnel.status === 200,
    'a tunnel',
    async () => {
      tunnel.socket.destroy()
      tunnel = await open()
    },
  )
  await once(tunnel.socket.resume(), 'end')
  await fixture.idle()
  const { result, code } = await fixture.outcome()
  assert.deepEqual([result, code], ['cut', 'unauthenticated'])
})

test('a caller that has closed its write side still receives the response', async (t) => {
  const host = async (socket: Socket) => {
    const text = await readAll(socket)
    socket.end(`you said ${text}`)
  }
  const fixture = await setUpTunnels(t, { host: (socket) => void host(socket) })
  const { socket } = await fixture.ask({ early: 'all' })
  socket.end()
  assert.equal(await readAll(socket), 'you said all')
  await fixture.idle()
  assert.equal((await fixture.outcome()).result, 'completed')
})

test('a host that has closed its write side still receives the rest', async (t) => {
  const received: string[] = []
  const host = async (socket: Socket) => {
    socket.end('bye')
    received.push(await readAll(socket))
  }
  const fixture = await setUpTunnels(t, { host: (socket) => void host(socket) })
  const { socket } = await fixture.ask()
  assert.equal(await readAll(socket), 'bye')
  socket.end('the rest')
  await fixture.idle()
  assert.deepEqual(received, ['the rest'])
  assert.equal((await fixture.outcome()).result, 'completed')
})

test('when one side breaks the connection the other is closed at once, and the record has the side', async (t) => {
  const fixture = await setUpTunnels(t)
  const first = await opened(fixture)
  first.socket.resetAndDestroy()
  await fixture.idle()
  assert.equal((await fixture.outcome()).result, 'cancelled')
  const second = await opened(fixture)
  second.host.resetAndDestroy()
  await gone(second)
  await until(() => fixture.records().filter(({ kind }) => kind === 'outcome').length === 2, 'the second outcome')
  const { result, code } = await fixture.outcome()
  assert.deepEqual([result, code], ['failed', 'upstream_error'])
})

/** Writes as much as the socket accepts; `sent` is the number of bytes so far. */
function pump(socket: Socket): { sent: number } {
  const state = { sent: 0 }
  const piece = Buffer.alloc(256 * 1024, 'x')
  const more = () => {
    while (state.sent < MUCH) {
      state.sent += piece.length
      if (!socket.write(piece)) return
    }
    socket.off('drain', more)
    socket.end()
  }
  socket.on('drain', more)
  more()
  return state
}

/** Resolves when writing has stalled before the end. */
async function stuck(writer: { readonly sent: number }): Promise<void> {
  let [last, looks] = [-1, 0]
  const isStill = () => {
    looks = writer.sent === last ? looks + 1 : 0
    last = writer.sent
    return looks === 20
  }
  await until(isStill, 'the writer to be stopped')
  assert.ok(writer.sent < MUCH, `${writer.sent} bytes were taken`)
}

async function counted(socket: Socket): Promise<number> {
  let got = 0
  socket.on('data', (chunk) => {
    got += chunk.length
  })
  await once(socket.resume(), 'end')
  return got
}

test('a caller that does not read pauses the host, and no data is lost', async (t) => {
  let writer = { sent: 0 }
  const fixture = await setUpTunnels(t, {
    host(socket) {
      socket.resume()
      writer = pump(socket)
    },
  })
  const { socket } = await fixture.ask()
  await until(() => writer.sent > 0, 'the first bytes')
  await stuck(writer)
  assert.equal(await counted(socket), MUCH)
  socket.end()
  const { bytesDown, result } = await fixture.outcome()
  assert.deepEqual([bytesDown, result], [MUCH, 'completed'])
})

test('a host that does not read pauses the caller, and no data is lost', async (t) => {
  const fixture = await setUpTunnels(t, { host: (socket) => void socket.pause() })
  const { socket } = await fixture.ask()
  await stuck(pump(socket.resume()))
  const [host = assert.fail('no host was reached')] = fixture.accepted
  assert.equal(await counted(host), MUCH)
  host.end()
  const { bytesUp, result } = await fixture.outcome()
  assert.deepEqual([bytesUp, result], [MUCH, 'completed'])
})

test('a gateway does not wait for tunnels when it stops', async (t) => {
  const fixture = await setUpTunnels(t, { drained: true })
  const tunnel = await opened(fixture)
  await fixture.gateway.drain()
  await gone(tunnel)
  const { result, code } = await fixture.outcome()
  assert.deepEqual([result, code], ['cut', 'state_unavailable'])
})

test('many tunnels that end in different ways leave no connection open', async (t) => {
  const fixture = await setUpTunnels(t)
  const ends: readonly ((socket: Socket) => void)[] = [
    (socket) => socket.end(),
    (socket) => socket.destroy(),
    (socket) => socket.resetAndDestroy(),
    (socket) => void socket.resume().write('more', () => socket.destroy()),
  ]
  const tunnels = await Promise.all(Array.from({ length: 40 }, () => fixture.ask({ early: 'hello' })))
  for (const [at, { socket }] of tunnels.entries()) ends[at % ends.length]?.(socket.resume())
  await until(() => fixture.accepted.length === 40, 'every connection')
  await fixture.idle()
  await until(() => tunnels.every(({ socket }) => socket.closed), 'the callers’ ends')
  await until(() => fixture.records().filter(({ kind }) => kind === 'outcome').length === 40, 'every outcome')
})
