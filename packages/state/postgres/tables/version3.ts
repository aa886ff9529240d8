/** The third version: the heads of the gateways' ledgers, where an attacker with access to a gateway's disk cannot write. */
export function version3(s: string): string {
  return `CREATE TABLE ${s}.ledger_head (
  ledger text PRIMARY KEY, head text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
);`
}
