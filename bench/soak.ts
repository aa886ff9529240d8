import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { governed } from './cases/mcp.ts'
import { Connection } from './harness/client.ts'
import type { Target } from './harness/load.ts'
import { fullEffort } from './harness/report.ts'
import { slope } from './harness/stats.ts'

const flags = {
  minutes: { type: 'int', default: 30, min: 1, max: 240, help: 'how long' },
  rate: { type: 'int', default: 500, min: 1, max: 5_000, help: 'calls a second' },
} as const satisfies FlagTable

const MIB = 1024 * 1024
/** Part of the run that counts as warm-up. */
const WARM_UP = 0.2
/** Milliseconds between two looks at the memory. */
const LOOK_MS = 2_000
/** Growth that the garbage collector alone can cause, in MiB per minute. */
const FLAT_MIB_A_MINUTE = 0.5
const CONNECTIONS = 16

/** `npm run soak`: governed calls at a constant rate on a gateway alone, and the slope of its resident memory after warm-up. */
async function main(args: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, args, 'npm run soak --')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  const { minutes, rate } = parsed.values
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-soak-'))
  let growth = Number.NaN
  try {
    await governed({ dir, effort: fullEffort }, async (target) => {
      growth = await soak(target, minutes, rate)
    })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  const flat = growth <= FLAT_MIB_A_MINUTE
  console.log(
    `RSS ${growth.toFixed(2)} MiB a minute after warm-up, target ≤ ${FLAT_MIB_A_MINUTE}: ${flat ? 'met' : 'not met'}`,
  )
  return flat ? 0 : 1
}

async function soak(target: Target, minutes: number, rate: number): Promise<number> {
  const began = performance.now()
  const until = began + minutes * 60_000
  const points: [minute: number, mib: number][] = []
  const look = setInterval(() => {
    const minute = (performance.now() - began) / 60_000
    const mib = target.server.rssBytes() / MIB
    if (minute >= minutes * WARM_UP) points.push([minute, mib])
    console.log(`${minute.toFixed(1)} min  ${mib.toFixed(1)} MiB`)
  }, LOOK_MS)
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => callAtRate(target, i, rate / CONNECTIONS, until)))
  } finally {
    clearInterval(look)
  }
  return slope(points)
}

async function callAtRate({ server, traffic }: Target, start: number, rate: number, until: number): Promise<void> {
  const connection = new Connection(server.port)
  const gap = 1000 / rate
  try {
    let due = performance.now() + (start * gap) / CONNECTIONS
    for (let n = start; due < until; n++, due += gap) {
      const wait = due - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      const answer = await connection.send(traffic.request(n))
      if (!traffic.isRight(answer)) throw new Error(`void: ${answer.status} ${answer.body.slice(0, 300)}`)
    }
  } finally {
    connection.close()
  }
}

process.exitCode = await main(process.argv.slice(2))
