import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Static } from 'typebox'
import Type from 'typebox'
import { Parse } from 'typebox/value'
import { parse, stringify } from 'yaml'

/** Where the rules are written, from the root of the repository. */
const SOURCE = 'deploy/chart/alerts.yaml'

const closed = { additionalProperties: false } as const
const texts = Type.Record(Type.String(), Type.String())

const recording = Type.Object({ record: Type.String(), expr: Type.String() }, closed)
const alert = Type.Object(
  {
    alert: Type.String({ pattern: '^[A-Z][A-Za-z]+$' }),
    severity: Type.Enum(['info', 'warning', 'critical']),
    for: Type.Optional(Type.String({ pattern: '^[0-9]+[smh]$' })),
    thresholds: Type.Optional(Type.Record(Type.String({ pattern: '^[a-z][A-Za-z]*$' }), Type.Number())),
    labels: Type.Optional(texts),
    expr: Type.String(),
    summary: Type.String(),
    description: Type.String(),
  },
  closed,
)
const group = Type.Object(
  { name: Type.String(), interval: Type.Optional(Type.String()), rules: Type.Array(Type.Union([alert, recording])) },
  closed,
)
const source = Type.Object({ groups: Type.Array(group) }, closed)

/** An alert as `deploy/chart/alerts.yaml` writes it (docs/spec/gateway.md, "Alert rules shipped with the chart"). */
export type Alert = Static<typeof alert>
export type AlertGroup = Static<typeof group>

/** By alert, then by name: what an expression compares with. */
export type Thresholds = Readonly<Record<string, Readonly<Record<string, number>>>>

/** Reads the rules of the repository below `root`. Throws where they are not written as they must be. */
export function readAlerts(root: string): readonly AlertGroup[] {
  return Parse(source, parse(readFileSync(path.join(root, SOURCE), 'utf8'))).groups
}

/** The alerts of all groups, without what is only recorded. Two of them may share a name. */
export function alertsOf(groups: readonly AlertGroup[]): readonly Alert[] {
  return groups.flatMap(({ rules }) => rules.filter((rule) => 'alert' in rule))
}

/** The defaults of `alerts.thresholds`. */
export function thresholdsOf(groups: readonly AlertGroup[]): Thresholds {
  const all: Record<string, Record<string, number>> = {}
  for (const { alert: name, thresholds } of alertsOf(groups)) {
    if (thresholds !== undefined) all[name] = { ...all[name], ...thresholds }
  }
  return all
}

/** Values of the installation: the placeholders that the chart's template fills in. */
export interface Installation {
  /** Where a reader finds `docs/runbooks.md`. */
  readonly runbookBaseURL: string
  readonly namespace: string
  /** Name of the gateway's StatefulSet, with which the names of its pods begin. */
  readonly gateway: string
  readonly thresholds: Thresholds
}

/** The rules as Prometheus reads them: the template of the chart's PrometheusRule says the same in Helm's words. */
export function prometheusRules(groups: readonly AlertGroup[], installation: Installation): object {
  return {
    groups: groups.map(({ name, interval, rules }) => ({
      name,
      ...(interval !== undefined && { interval }),
      rules: rules.map((rule) => ('alert' in rule ? alertingRule(rule, installation) : rule)),
    })),
  }
}

function alertingRule(rule: Alert, { runbookBaseURL, namespace, gateway, thresholds }: Installation): object {
  const filled = Object.entries({ namespace, gateway, ...thresholds[rule.alert] })
  return {
    alert: rule.alert,
    expr: filled.reduce((expr, [name, value]) => expr.replaceAll(`\${${name}}`, String(value)), rule.expr),
    ...(rule.for !== undefined && { for: rule.for }),
    labels: { severity: rule.severity, ...rule.labels },
    annotations: {
      summary: rule.summary,
      description: rule.description,
      runbook_url: `${runbookBaseURL}#${rule.alert.toLowerCase()}`,
    },
  }
}

const HEAD = `# Written from deploy/chart/alerts.yaml by \`node services/gateway/reference.ts\`; do not edit.
# For a Prometheus that reads rule files; with its operator, set alerts.enabled of the chart instead. Change the namespace
# and the name of the gateway in GatewayNotReady, and where docs/runbooks.md is read, to yours.
`

/** `deploy/alerts/plat.rules.yaml`: the rules with every default, for namespace plat-system and release plat. */
export function rulesFile(groups: readonly AlertGroup[]): string {
  const rules = prometheusRules(groups, {
    runbookBaseURL: 'docs/runbooks.md',
    namespace: 'plat-system',
    gateway: 'plat-gateway',
    thresholds: thresholdsOf(groups),
  })
  return HEAD + stringify(rules, { lineWidth: 0 })
}
