package mutants

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

var operators = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.MUL_ASSIGN: {"/="},
	token.QUO_ASSIGN: {"*="},
	token.INC:        {"--"}, token.DEC: {"++"}, token.CONTINUE: {"break"}, token.BREAK: {"continue"},
}

// swap puts another operator at a place.
func (f *finder) swap(at token.Pos, op token.Token) {
	for _, other := range operators[op] {
		f.add(at, at+token.Pos(len(op.String())), other)
	}
}

// walk notes the mutants in the body of a function. Those that do not compile are dropped later.
func (f *finder) walk(body ast.Node, of *ast.FuncType) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type)
			return false
		case *ast.CallExpr:
			return f.call(n)
		case *ast.ArrayType: // a longer array makes no difference
			return false
		case *ast.SelectorExpr:
			f.walk(n.X, of)
			return false
		case *ast.KeyValueExpr: // the name of a field is no constant
			f.walk(n.Value, of)
			return false
		case *ast.LabeledStmt:
			f.fn.labels = append(f.fn.labels, f.at(n.Label.End()))
			f.walk(n.Stmt, of)
			return false
		case *ast.BranchStmt:
			f.swap(n.TokPos, n.Tok)
			if n.Label != nil {
				f.fn.labels = append(f.fn.labels, f.at(n.Label.End()))
			}
			return false
		case *ast.IfStmt:
			f.add(n.Cond.Pos(), n.Cond.Pos(), "true || ")
			f.add(n.Cond.Pos(), n.Cond.Pos(), "false && ")
		case *ast.ForStmt:
			if n.Post != nil {
				f.posts[n.Post] = true
			}
		case *ast.ReturnStmt:
			f.dropError(n, of)
		case ast.Expr:
			f.expression(n)
		case ast.Stmt:
			f.statement(n)
		}
		return true
	})
}

// call reports whether what is in a call has mutants: texts do not. The capacity of a slice changes
// only its speed.
func (f *finder) call(n *ast.CallExpr) bool {
	if fun, ok := n.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "fmt" {
			return false
		}
	}
	if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "make" {
		return len(n.Args) < 3
	}
	return true
}

func (f *finder) expression(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.swap(n.OpPos, n.Op)
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			f.add(n.OpPos, n.OpPos+1, "")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.add(n.Pos(), n.End(), "("+n.Value+" + 1)")
			f.add(n.Pos(), n.End(), "("+n.Value+" - 1)")
		} else if n.Kind == token.FLOAT && strings.Trim(n.Value, "0.") != "" { // 0 times 1.5 is 0
			f.add(n.Pos(), n.End(), "("+n.Value+" * 1.5)")
		}
	case *ast.Ident:
		if f.constants[n.Name] {
			f.add(n.Pos(), n.End(), "("+n.Name+"*2 + 1)")
		}
	}
}

func (f *finder) statement(n ast.Stmt) {
	switch n := n.(type) {
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok &&
			!strings.HasPrefix(f.src[f.at(call.Pos()):], "panic(") {
			f.add(n.Pos(), n.End(), "")
		}
	case *ast.IncDecStmt:
		if !f.posts[n] {
			f.swap(n.TokPos, n.Tok)
		}
	case *ast.AssignStmt:
		f.swap(n.TokPos, n.Tok)
		parts := !slices.ContainsFunc(n.Lhs, func(to ast.Expr) bool {
			_, whole := to.(*ast.Ident)
			return whole
		})
		if n.Tok != token.DEFINE && parts { // fields and elements
			f.add(n.Pos(), n.End(), "")
		}
	}
}

// dropError returns nil where an error is returned.
func (f *finder) dropError(n *ast.ReturnStmt, of *ast.FuncType) {
	if of.Results == nil || len(n.Results) == 0 {
		return
	}
	last, fields := n.Results[len(n.Results)-1], of.Results.List
	kind, ok := fields[len(fields)-1].Type.(*ast.Ident)
	if name, isName := last.(*ast.Ident); ok && kind.Name == "error" &&
		(!isName || name.Name != "nil") {
		f.add(last.Pos(), last.End(), "nil")
	}
}
