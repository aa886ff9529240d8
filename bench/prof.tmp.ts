import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { callTraffic } from './cases/mcp.ts'
import { Connection } from './harness/client.ts'
import { makeKeys, startGateway, startOwn } from './harness/plat.ts'

const dir = mkdtempSync('/tmp/prof/run-')
const keys = await makeKeys(dir)
const direct = await startOwn(dir, 'upstream.ts')
const floor = await startOwn(dir, 'relay.ts', direct.url)
process.env.NODE_OPTIONS = '--perf-basic-prof --interpreted-frames-native-stack'
if (process.argv[2] === 'noperf') delete process.env.NODE_OPTIONS
const ours = await startGateway(dir, keys, `${direct.url}/mcp`)
delete process.env.NODE_OPTIONS
const traffic = callTraffic(keys)
async function load(server, ms) {
  const cs = Array.from({ length: 16 }, () => new Connection(server.port))
  const until = performance.now() + ms
  let n = 0
  const c0 = server.cpuMicros()
  const t0 = performance.now()
  await Promise.all(
    cs.map(async (c) => {
      while (performance.now() < until) {
        const a = await c.send(traffic.request(n++))
        if (!traffic.isRight(a)) throw new Error(a.body.toString().slice(0, 300))
      }
    }),
  )
  for (const c of cs) c.close()
  return { us: (server.cpuMicros() - c0) / n, n, rps: (n / (performance.now() - t0)) * 1000 }
}
await load(floor, 1500)
await load(ours, 4000)
for (let i = 0; i < 3; i++) {
  console.log('floor', await load(floor, 1500))
  console.log('ours', await load(ours, 1500))
}
console.log(
  (await (await fetch(ours.url + '/metrics')).text())
    .split('\n')
    .filter((l) => /commit.*(count|sum|total)|requests_total/.test(l))
    .join('\n'),
)
if (process.argv[2] !== 'noperf') {
  const p = spawn(
    'perf',
    ['record', '-F', '1999', '-g', '-p', String(ours.pid), '-o', '/tmp/prof/perf.data', '--', 'sleep', '6'],
    { stdio: 'inherit' },
  )
  const done = new Promise((r) => p.once('exit', r))
  await load(ours, 7000)
  await done
}
await ours.stop()
await floor.stop()
await direct.stop()
