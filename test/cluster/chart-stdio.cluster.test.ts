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
  const argsOf = (rendered: readonly Rendered[]): readonly string[] =>
    Object(podOf(objectOf(rendered, 'Deployment', 'plat-operator'))).containers[0].args
  const { labels } = Object(Object(objectOf(objects, 'StatefulSet', 'plat-gateway').spec).template).metadata
  const option = argsOf(objects).find((arg) => arg.startsWith('-gateway-labels=')) ?? ''
  for (const label of option.replace('-gateway-labels=', '').split(',')) {
    const [name = '', value] = label.split('=')
    assert.equal(labels[name], value, label)
  }
  assert.ok(argsOf(objects).some((arg) => arg.startsWith('-stdio-image=registry.example/plat:')))
  const egressOf = (rendered: readonly Rendered[]) =>
    JSON.stringify(Object(objectOf(rendered, 'NetworkPolicy', 'plat-gateway').spec).egress)
  assert.match(egressOf(objects), /plat\.dev\/stdio-server/)
  const without = helm.render({ ...values, operator: {} })
  assert.doesNotMatch(JSON.stringify(without.filter(({ kind }) => kind !== 'CustomResourceDefinition')), /stdio/)
})
