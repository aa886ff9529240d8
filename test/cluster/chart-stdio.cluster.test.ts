import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { before, test } from 'node:test'
import { parse } from 'yaml'
import { buildHelm } from './binaries.ts'
import { least } from './chart-values.ts'
import { Helm, NAMESPACE, objectOf, podOf, type Rendered, type Values } from './helm.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

let helm: Helm

before(() => {
  const built = buildHelm(() => {})
  assert.ok(built.ok, built.text)
  helm = new Helm(built.text)
})

function argsOf(rendered: readonly Rendered[]): readonly string[] {
  return Object(podOf(objectOf(rendered, 'Deployment', 'plat-operator'))).containers[0].args
}

/** The operator knows the pods of the gateway by labels that they have. */
function assertGatewayLabels(objects: readonly Rendered[]): void {
  const { labels } = Object(Object(objectOf(objects, 'StatefulSet', 'plat-gateway').spec).template).metadata
  const options = argsOf(objects).filter((arg) => arg.startsWith('-gateway-labels='))
  assert.equal(options.length, 1)
  for (const label of options.join().replace('-gateway-labels=', '').split(',')) {
    const [name = '', value] = label.split('=')
    assert.equal(labels[name], value, label)
  }
}

test('sandboxes give the operator the labels of the gateway, which live views need, with and without stdio servers', () => {
  const sandboxes = { enabled: true }
  assertGatewayLabels(helm.render({ ...least, operator: { sandboxes } }))
  assertGatewayLabels(helm.render({ ...least, operator: { sandboxes, stdioServers: { enabled: true } } }))
  assert.doesNotMatch(argsOf(helm.render(least)).join(), /-gateway-labels/)
})

test('stdio servers give the operator the rights of the page, the labels of the gateway and its way out, and only if they are enabled', () => {
  const values: Values = {
    ...least,
    operator: { stdioServers: { enabled: true } },
    networkPolicy: { gatewayEgress: [{ to: [] }] },
  }
  const objects = helm.render(values)
  const page = readFileSync(path.join(ROOT, 'docs/stdio.md'), 'utf8')
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? []
  assert.deepEqual(objectOf(objects, 'ClusterRole', `${NAMESPACE}-plat-operator-stdio`).rules, parse(yaml).rules)
  assertGatewayLabels(objects)
  assert.ok(argsOf(objects).some((arg) => arg.startsWith('-stdio-image=registry.example/plat:')))
  const egressOf = (rendered: readonly Rendered[]) =>
    JSON.stringify(Object(objectOf(rendered, 'NetworkPolicy', 'plat-gateway').spec).egress)
  assert.match(egressOf(objects), /plat\.dev\/stdio-server/)
  const without = helm.render({ ...values, operator: {} })
  assert.doesNotMatch(JSON.stringify(without.filter(({ kind }) => kind !== 'CustomResourceDefinition')), /stdio/)
})
