import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { buildBinaries } from './binaries.ts'
import { everything, least } from './chart-values.ts'
import { type Container, Helm, podOf, type Values } from './helm.ts'

let helm: Helm

before(() => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  helm = new Helm(binaries.helm)
})

test('the heap of each process fits the memory limit of its container', () => {
  const containersOf = (values: Values) =>
    helm
      .render(values)
      .filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind))
      .map((object) => podOf(object).containers[0])
  const heapOf = ({ env }: Container) => env.filter(({ name }) => name === 'NODE_OPTIONS').map(({ value }) => value)
  const all = containersOf(everything)
  assert.equal(all.length, 4)
  for (const container of all) {
    const { requests, limits } = container.resources
    assert.ok(bytesOf(requests.memory) * 2 <= bytesOf(limits?.memory), String(container.command))
    assert.deepEqual(heapOf(container), ['--max-old-space-size-percentage=60'])
  }
  const env = [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=300' }]
  const changed = containersOf({
    ...least,
    gateway: { env },
    identity: { resources: { limits: { memory: null } } },
    operator: { resources: { limits: { memory: '2Gi' } } },
  })
  assert.deepEqual(
    changed.map((container) => [container.command[0], heapOf(container)]),
    [
      ['plat-identity', []],
      ['plat-operator', ['--max-old-space-size-percentage=60']],
      ['plat-gateway', ['--max-old-space-size=300']],
    ],
  )
})

/** Of the quantities that the chart uses. */
function bytesOf(quantity: unknown): number {
  const [, number = '', unit = ''] = /^(\d+)(Mi|Gi)$/.exec(String(quantity)) ?? []
  assert.notEqual(number, '', String(quantity))
  return Number(number) * (unit === 'Gi' ? 2 ** 30 : 2 ** 20)
}
