import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type AlertGroup, alertsOf } from '../chart/alerts.ts'
import type { Promtool } from './promtool.ts'

/** The rules' file in promtool's folder. */
export const RULES_FILE = 'plat.rules.yaml'

/** By series its values, one every 30 seconds, in promtool's words. */
export type Input = Readonly<Record<string, string>>

/** Input of a trial of an alert. */
export interface Trial {
  /** The alert fires at this time, */
  readonly at: string
  /** and not yet at this one, for an alert that waits. */
  readonly notYet?: string
  readonly labels: Readonly<Record<string, string>>
  readonly says: string
  /** On each of these it fires. */
  readonly on: readonly Input[]
  /** On each of these it does not. */
  readonly notOn: readonly Input[]
  readonly interval?: string
}

/** Has Prometheus judge all inputs by the rule of `groups`, compares what fires, and answers which rule it was. */
export function tryAlert(
  promtool: Promtool,
  groups: readonly AlertGroup[],
  alert: string,
  { at, notYet, labels, says, on, notOn, interval = '30s' }: Trial,
): string {
  const rule = alertsOf(groups).find(
    (one) =>
      one.alert === alert && one.severity === labels.severity && (one.labels?.mode ?? '') === (labels.mode ?? ''),
  )
  assert.ok(rule !== undefined, alert)
  const annotations = {
    summary: rule.summary,
    description: says,
    runbook_url: `docs/runbooks.md#${alert.toLowerCase()}`,
  }
  const fired = [{ exp_labels: labels, exp_annotations: annotations }]
  const alertsAt = (time: string, expected: readonly object[]) => ({
    eval_time: time,
    alertname: alert,
    exp_alerts: expected,
  })
  const group = (input: Input, expected: readonly object[]) => ({
    interval,
    input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
    alert_rule_test: [alertsAt(at, expected), ...(notYet === undefined ? [] : [alertsAt(notYet, [])])],
  })
  const text = JSON.stringify({
    rule_files: [RULES_FILE],
    evaluation_interval: '10s',
    tests: [...on.map((input) => group(input, fired)), ...notOn.map((input) => group(input, []))],
  })
  const file = path.join(promtool.dir, `${alert}.json`)
  writeFileSync(file, text)
  assert.doesNotMatch(promtool.run(['test', 'rules', file]), /^exit/)
  return nameOf(rule)
}

/** Distinguishes rules of one alert. */
export function nameOf({ alert, severity, labels }: ReturnType<typeof alertsOf>[number]): string {
  return [alert, severity, labels?.mode].join(' ')
}

/** A histogram that counts `below` observations up to `bound`, and `all` up to twice that, between two samples. */
export function histogram(name: string, labels: string, bound: number, [below, all]: readonly [number, number]): Input {
  const series = (le: string | number) => `${name}_bucket{${labels}le="${le}"}`
  return {
    [series(bound)]: `0+${below}x200`,
    [series(bound * 2)]: `0+${all}x200`,
    [series('+Inf')]: `0+${all}x200`,
  }
}
