import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testMetrics } from '../testing/metrics.ts'
import { createRunnerMetrics } from './metrics.ts'

test('each event counts in the series of its labels, whichever came before', () => {
  const metrics = testMetrics()
  const counted = createRunnerMetrics(metrics)
  for (const server of ['a', 'a', 'b', 'a']) {
    counted.decided('allow', server)
    counted.responded(server, 'tools/call', 200)
    counted.upstream(server, 1)
  }
  counted.decided('deny', 'a')
  counted.responded('a', 'tools/call', 403)
  counted.responded('a', 'tools/list', 403)
  const text = metrics.expose()
  const seriesOf = (name: string) => text.split('\n').filter((line) => line.startsWith(`plat_gateway_${name}{`))
  assert.deepEqual(seriesOf('decisions_total'), [
    'plat_gateway_decisions_total{action="allow",server="a"} 3',
    'plat_gateway_decisions_total{action="allow",server="b"} 1',
    'plat_gateway_decisions_total{action="deny",server="a"} 1',
  ])
  assert.deepEqual(seriesOf('requests_total'), [
    'plat_gateway_requests_total{server="a",method="tools/call",code="200"} 3',
    'plat_gateway_requests_total{server="b",method="tools/call",code="200"} 1',
    'plat_gateway_requests_total{server="a",method="tools/call",code="403"} 1',
    'plat_gateway_requests_total{server="a",method="tools/list",code="403"} 1',
  ])
  assert.deepEqual(seriesOf('upstream_latency_seconds_count'), [
    'plat_gateway_upstream_latency_seconds_count{server="a"} 3',
    'plat_gateway_upstream_latency_seconds_count{server="b"} 1',
  ])
})
