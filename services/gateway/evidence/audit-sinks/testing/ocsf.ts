import assert from 'node:assert/strict'
import { isObject } from '@plat/core'

/** Rules for one object; `at_least_one` as in the published constraints. */
interface ObjectRule {
  readonly required: readonly string[]
  readonly attributes: Readonly<Record<string, AttributeRule>>
  readonly at_least_one?: readonly string[]
}
type AttributeRule = 'string' | 'integer' | 'timestamp' | readonly number[] | ObjectRule | { readonly list: ObjectRule }

// The part of OCSF 1.6.0 in use: classes API Activity, Detection Finding and Application Lifecycle with their objects,
// required attributes and constraints, as in the published schema.

const product: ObjectRule = {
  required: ['name'],
  attributes: { name: 'string', vendor_name: 'string', version: 'string', uid: 'string' },
}
const metadata: ObjectRule = {
  required: ['product', 'version'],
  attributes: {
    version: 'string',
    product,
    uid: 'string',
    sequence: 'integer',
    event_code: 'string',
    log_name: 'string',
    log_provider: 'string',
    original_time: 'string',
    tenant_uid: 'string',
    correlation_uid: 'string',
  },
}
const session: ObjectRule = { required: [], attributes: { uid: 'string', issuer: 'string' } }
const user: ObjectRule = {
  required: [],
  attributes: { name: 'string', uid: 'string', type_id: [0, 1, 2, 3, 4, 99] },
  at_least_one: ['account', 'name', 'uid'],
}
const endpoint: ObjectRule = {
  required: [],
  attributes: { name: 'string', svc_name: 'string', ip: 'string', hostname: 'string', uid: 'string' },
  at_least_one: ['ip', 'uid', 'name', 'hostname', 'svc_name', 'instance_uid', 'interface_uid', 'interface_name'],
}
const base: ObjectRule = {
  required: ['activity_id', 'category_uid', 'class_uid', 'metadata', 'severity_id', 'time', 'type_uid'],
  attributes: {
    activity_id: [],
    activity_name: 'string',
    category_uid: 'integer',
    class_uid: 'integer',
    type_uid: 'integer',
    time: 'timestamp',
    severity_id: [0, 1, 2, 3, 4, 5, 6, 99],
    message: 'string',
    metadata,
    raw_data: 'string',
    status_id: [0, 1, 2, 99],
    status_code: 'string',
    status_detail: 'string',
  },
}

function classOf(more: ObjectRule): ObjectRule {
  return {
    required: [...base.required, ...more.required],
    attributes: { ...base.attributes, ...more.attributes },
  }
}

const classes: Readonly<Record<number, { readonly category: number; readonly rule: ObjectRule }>> = {
  6003: {
    category: 6,
    rule: classOf({
      required: ['actor', 'api', 'src_endpoint'],
      attributes: {
        activity_id: [0, 1, 2, 3, 4, 99],
        actor: {
          required: [],
          attributes: { app_name: 'string', session, user },
          at_least_one: ['process', 'user', 'invoked_by', 'session', 'app_name', 'app_uid'],
        },
        api: {
          required: ['operation'],
          attributes: {
            operation: 'string',
            service: { required: [], attributes: { name: 'string' }, at_least_one: ['name', 'uid'] },
            request: { required: ['uid'], attributes: { uid: 'string' } },
            response: { required: [], attributes: { code: 'integer', error: 'string', message: 'string' } },
          },
        },
        src_endpoint: endpoint,
        dst_endpoint: endpoint,
        resources: {
          list: { required: [], attributes: { name: 'string', namespace: 'string' }, at_least_one: ['name', 'uid'] },
        },
      },
    }),
  },
  2004: {
    category: 2,
    rule: classOf({
      required: ['finding_info'],
      attributes: {
        activity_id: [0, 1, 2, 3, 99],
        status_id: [0, 1, 2, 3, 4, 5, 6, 99],
        finding_info: {
          required: ['uid', 'title'],
          attributes: { uid: 'string', title: 'string', created_time: 'timestamp' },
        },
      },
    }),
  },
  6002: {
    category: 6,
    rule: classOf({ required: ['app'], attributes: { activity_id: [0, 1, 2, 3, 4, 5, 6, 7, 8, 99], app: product } }),
  },
}

/** Fails for an event that the schema does not allow. Returns its class. */
export function assertOcsf(event: unknown): number {
  assert.ok(isObject(event))
  const { class_uid, category_uid, activity_id, activity_name, type_uid } = event
  const found = classes[Number(class_uid)]
  assert.ok(found !== undefined, `class ${class_uid}`)
  assert.equal(category_uid, found.category)
  assert.equal(type_uid, Number(class_uid) * 100 + Number(activity_id))
  if (activity_id === 99)
    assert.ok(typeof activity_name === 'string' && activity_name !== '', "an activity of one's own has a name")
  assertObject(event, found.rule, 'event')
  return Number(class_uid)
}

function assertObject(value: Readonly<Record<string, unknown>>, rule: ObjectRule, path: string): void {
  for (const name of rule.required) assert.ok(value[name] !== undefined, `${path}.${name} is required`)
  if (rule.at_least_one !== undefined)
    assert.ok(
      rule.at_least_one.some((name) => value[name] !== undefined),
      `${path} needs one of ${rule.at_least_one}`,
    )
  for (const [name, member] of Object.entries(value)) {
    const wanted = rule.attributes[name]
    assert.ok(wanted !== undefined, `${path}.${name} is not an attribute`)
    assertAttribute(member, wanted, `${path}.${name}`)
  }
}

const scalars: Readonly<Record<'string' | 'integer' | 'timestamp', (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: (value) => Number.isSafeInteger(value),
  // Milliseconds since the epoch.
  timestamp: (value) => Number.isSafeInteger(value) && Number(value) > 1e12,
}

function assertAttribute(value: unknown, rule: AttributeRule, path: string): void {
  if (typeof rule === 'string') {
    assert.ok(scalars[rule](value), path)
  } else if (isNumbers(rule)) {
    assert.ok(rule.includes(Number(value)), `${path}: ${value}`)
  } else if ('list' in rule) {
    assert.ok(Array.isArray(value), path)
    for (const one of value) assertAttribute(one, rule.list, path)
  } else {
    assert.ok(isObject(value), path)
    assertObject(value, rule, path)
  }
}

function isNumbers(rule: AttributeRule): rule is readonly number[] {
  return Array.isArray(rule)
}
