package plat

default action := "deny"

reason := "notes have at most 20 characters"

action := "allow" if {
	input.target.tool == "add_note"
	count(input.args.text) <= 20
}
